// The tour of the official `openai` client for Node: one JSON object of observations, flattened by observing.py afterwards.
// node by_openai.mjs <folder of the client> <url> <model> <embedding model> <image as base64>
import { createRequire } from "node:module";

const [folder, url, model, embedder, image] = process.argv.slice(2);
const OpenAI = createRequire(`${folder}/`)("openai").default;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 2 });
const user = (content) => [{ role: "user", content }];
const chat = (messages, more = {}) => client.chat.completions.create({ model, messages, max_tokens: 24, ...more });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "The weather", parameters } }];

async function streamed(messages, more = {}) {
  const chunks = [];
  for await (const chunk of await chat(messages, { stream: true, ...more })) chunks.push(chunk);
  return chunks;
}

async function refused(call) {
  try {
    return { raised: null, answer: await call() };
  } catch (error) {
    return { raised: error.constructor.name, status: error.status ?? null };
  }
}

const weather = user("How is the weather in Tokyo?");
const call = await chat(weather, { tools });
const { role, content, tool_calls } = call.choices[0].message;
const result = { role: "tool", tool_call_id: tool_calls[0].id, content: "21 degrees" };
const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } };
const runner = client.chat.completions.stream({ model, messages: weather, tools });
console.log(
  JSON.stringify({
    whole: await chat(user("Say hello.")),
    length: await chat(user("Say hello."), { max_tokens: 1 }),
    chunks: await streamed(user("Say hello."), { stream_options: { include_usage: true } }),
    "tool call": call,
    "tool call streamed": (await runner.finalChatCompletion()).choices,
    "tool result": await chat([...weather, { role, content, tool_calls }, result], { tools }),
    image: await chat(user([{ type: "text", text: "What?" }, picture])),
    "60,000 tokens": await chat(user("Count the characters: " + "water ".repeat(60_000))),
    embeddings: await client.embeddings.create({ model: embedder, input: ["a", "b"] }),
    "error: no messages": await refused(() => client.post("/chat/completions", { body: { model } })),
    "error: no such path": await refused(() => client.post("/nonsense", { body: {} })),
  }),
);
