// How fast totals grow, from what was seen of them before.

const MOST = 20000;

/** Finds rates: a key and its totals to what each has grown by a second, null at the first look. */
export function rates() {
  const seen = new Map();
  return (key, totals) => {
    const now = performance.now() / 1000;
    const before = seen.get(key);
    if (!before || totals.some((each, at) => each < before.totals[at])) {
      if (seen.size > MOST) seen.clear();
      seen.set(key, { now, totals, rates: totals.map(() => null) });
    } else if (now - before.now > 0.9) {
      seen.set(key, { now, totals, rates: totals.map((each, at) => (each - before.totals[at]) / (now - before.now)) });
    }
    return seen.get(key).rates;
  };
}
