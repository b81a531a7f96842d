/** Pairs the calls and results of one conversation. They have ids, or only names and an order. */
export interface Pairs {
  call(name: string, id: string | null | undefined): string;
  result(name: string, id: string | null | undefined): string;
}

export function createPairs(): Pairs {
  const open: { readonly name: string; readonly id: string }[] = [];
  let unnamed = 0;
  return {
    call(name, given) {
      const id = given ? plainId(name, given) : `call_${unnamed++}`;
      open.push({ name, id });
      return id;
    },
    result(name, given) {
      const wanted = given ? plainId(name, given) : undefined;
      const index = open.findIndex((call) => (wanted === undefined ? call.name === name : call.id === wanted));
      const [call] = index === -1 ? [] : open.splice(index, 1);
      return call?.id ?? wanted ?? `call_${name}`;
    },
  };
}

/** Gemini CLI prefixes the id with the tool's name, and some endpoints refuse long ids. */
function plainId(name: string, id: string): string {
  return id.startsWith(`${name}__`) ? id.slice(name.length + 2) : id;
}
