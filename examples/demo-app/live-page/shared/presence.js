/** How many people look at a list, in words; nothing while that is not known. */
export function presenceWords(people) {
  if (people === undefined) return "";
  return people === 1 ? "1 person here" : `${people} people here`;
}
