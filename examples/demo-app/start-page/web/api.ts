export interface Item {
  readonly id: string;
  readonly name: string;
  readonly amount: string;
  readonly done: boolean;
}

export interface Room {
  readonly id: string;
  readonly name: string;
  readonly items: readonly Item[];
}

export const api = {
  rooms: () => ask<readonly Room[]>("GET", "/api/rooms"),
  openRoom: (name: string) => ask<Room>("POST", "/api/rooms", { name }),
  room: (id: string) => ask<Room>("GET", `/api/rooms/${id}`),
  add: (id: string, item: Pick<Item, "name" | "amount">) => ask<Room>("POST", `/api/rooms/${id}/items`, item),
  setDone: (id: string, item: string, done: boolean) => ask<Room>("PATCH", `/api/rooms/${id}/items/${item}`, { done }),
  remove: (id: string, item: string) => ask<Room>("DELETE", `/api/rooms/${id}/items/${item}`),
};

/** Fails with words that can be shown. */
async function ask<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(path, { method, ...(body && { body: JSON.stringify(body) }) }).catch(() => undefined);
  if (response === undefined) throw new Error("The server does not answer. Try again in a moment.");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
