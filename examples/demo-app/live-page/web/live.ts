import type { Room } from "./api.ts";

type Message = { readonly type: "room"; readonly room: Room } | { readonly type: "people"; readonly people: number };

export interface Follower {
  onRoom(room: Room): void;
  /** Undefined: the connection is lost. */
  onPeople(people: number | undefined): void;
}

/** Tells all that happens in a room. The browser connects anew by itself. */
export function followRoom(id: string, { onRoom, onPeople }: Follower): void {
  const events = new EventSource(`/api/rooms/${id}/events`);
  events.addEventListener("message", ({ data }) => {
    const message: Message = JSON.parse(data);
    if (message.type === "room") onRoom(message.room);
    else onPeople(message.people);
  });
  events.addEventListener("error", () => onPeople(undefined));
}
