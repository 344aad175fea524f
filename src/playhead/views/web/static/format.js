// Formats numbers, times and costs. Pure. Times are microseconds unless the name says otherwise.

export function duration(us) {
  if (us === null || us === undefined) return "–";
  const s = us / 1e6;
  if (us <= 0) return "0 s";
  if (s < 0.00095) return `${Math.max(0, us).toFixed(0)} µs`;
  if (s < 0.0995) return s < 0.00995 ? `${(s * 1e3).toFixed(1)} ms` : `${(s * 1e3).toFixed(0)} ms`;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} m ${String(whole % 60).padStart(2, "0")} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 100
    ? `${hours} h ${String(minutes % 60).padStart(2, "0")} m`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// A place on a tape: 00:07.3, 1:02:09.0; in a run of less than a second, 7.3 ms.
export function position(us, total = Infinity) {
  if (total < 1e4) return `${Math.round(Math.max(0, us))} µs`;
  if (total < 1e6) return `${(Math.max(0, us) / 1000).toFixed(1)} ms`;
  const tenths = Math.floor(Math.max(0, us) / 1e5);
  const minutes = Math.floor(tenths / 600);
  const rest = tenths % 600;
  const shown = `${String(minutes % 60).padStart(2, "0")}:${String(Math.floor(rest / 10)).padStart(2, "0")}.${rest % 10}`;
  return minutes >= 60 ? `${Math.floor(minutes / 60)}:${shown}` : shown;
}

export function count(number) {
  return number === null || number === undefined ? "–" : number.toLocaleString("en-US");
}

export function short(number) {
  if (number === null || number === undefined) return "–";
  if (number < 10_000) return count(number);
  if (number < 999_500) return `${(number / 1000).toFixed(number >= 100_000 ? 0 : 1)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

export function money(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd <= 0) return "$0.00";
  if (usd >= 1)
    return `$${usd.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return usd >= 0.0001 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(6)}`;
}

export function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (value < 1000)
      return unit === "B" || value >= 100 ? `${value.toFixed(0)} ${unit}` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

export function moment(wallNs) {
  const date = new Date(wallNs / 1e6);
  return Number.isNaN(date.getTime())
    ? "?"
    : date.toLocaleString("sv-SE", { hour12: false }) + `.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function day(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "–" : date.toLocaleString("sv-SE").slice(0, 16);
}

export function age(iso, now) {
  const s = Math.max(0, Math.floor((now - new Date(iso).getTime()) / 1000));
  if (Number.isNaN(s)) return "–";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} m ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
