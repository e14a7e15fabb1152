// Long names: what shows of them where they do not fit. Names that differ anywhere must look different, so a list shows
// them whole, in several lines where it is narrow.

// No list has room for more; the protocol lets a name have 255.
const WHOLE_MAX = 80;

/** Return the start of a name, the middle that is left out if it is longer than this, and its end. */
export function split(label, most = WHOLE_MAX) {
  const letters = Array.from(String(label));
  if (letters.length <= most) return [String(label), "", ""];
  const end = Math.floor((most - 1) / 2);
  const start = most - 1 - end;
  return [letters.slice(0, start), letters.slice(start, -end), letters.slice(-end)].map((part) => part.join(""));
}

/** Return a name whose middle is left out if it is longer than this. */
export function shortened(label, most) {
  const [start, middle, end] = split(label, most);
  return middle ? `${start}…${end}` : start;
}

/** Return one or two lines of a name for a box with room for this many letters in each. */
export function inLines(label, room) {
  const letters = Array.from(shortened(label, 2 * room));
  if (letters.length <= room) return [letters.join("")];
  const first = letters.length - room;
  // After the last separator that lets both lines fit.
  let at = room;
  while (at >= first && !/[^\p{L}\p{N}]/u.test(letters[at - 1])) at -= 1;
  if (at < first) at = room;
  return [letters.slice(0, at).join(""), letters.slice(at).join("")];
}
