/** How far a list is. */
export function progressOf(items) {
  const total = items.length;
  const done = items.filter((item) => item.done).length;
  return { done, total, words: wordsOf(done, total) };
}

function wordsOf(done, total) {
  if (total === 0) return "Nothing on the list yet";
  if (done === total) return "All done";
  return `${done} of ${total} done`;
}
