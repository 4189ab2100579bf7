// What is read out of histograms.

/** The bound below which this part of the observations is; null where there are none. */
export function percentile({ bounds, counts }, part) {
  const total = counts.reduce((sum, each) => sum + each, 0);
  let passed = 0;
  for (let at = 0; at < counts.length; at += 1) {
    passed += counts[at];
    if (total && passed >= total * part) return at < bounds.length ? bounds[at] : Infinity;
  }
  return null;
}

/** What came between two looks at a histogram. */
export const between = (before, now) => ({ bounds: now.bounds, counts: now.counts.map((each, at) => each - (before ? before.counts[at] : 0)) });
