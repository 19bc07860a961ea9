// The page's words in its language, and seconds in them as words.py writes them.

export const words = JSON.parse(document.getElementById("words").textContent);

export function span(seconds) {
  const unit = (name, value) => words[name].replace("{}", value);
  if (seconds < 10) return unit("unit_s", Math.max(0, seconds).toFixed(1));
  const whole = Math.round(seconds);
  if (whole < 120) return unit("unit_s", whole);
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return unit("unit_min", minutes);
  return `${unit("unit_h", Math.floor(minutes / 60))} ${unit("unit_min", minutes % 60)}`;
}
