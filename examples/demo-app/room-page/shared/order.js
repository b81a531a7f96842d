/** What is still to be bought first, then what is done; each in the order in which it was added. */
export function inShoppingOrder(items) {
  return [...items.filter((item) => !item.done), ...items.filter((item) => item.done)];
}
