// The page's words in its language, and seconds in them as words.py writes them.

export const words = JSON.parse(document.getElementById("words").textContent);

export function fill(text, ...values) {
  return values.reduce((filled, value) => filled.replace("{}", () => value), text);
}

// What words.py calls the same.
export function toGo(seconds) { return seconds >= 1 ? span(seconds) : words.soon; }
export function late(seconds) { return fill(words.late, span(seconds)); }

export function span(seconds) {
  const unit = (name, value) => fill(words[name], value);
  if (seconds < 9.95) return unit("unit_s", Math.max(0, seconds).toFixed(1));
  const whole = Math.round(seconds);
  if (whole < 120) return unit("unit_s", whole);
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return unit("unit_min", minutes);
  return `${unit("unit_h", Math.floor(minutes / 60))} ${unit("unit_min", minutes % 60)}`;
}
