import type { IntentDraft } from "@slipway/contract";

export const intent: IntentDraft = {
  appType: "web app",
  character: "Friendly, quick and out of the way: it is used with one hand, in a shop",
  coreValue: "Everyone who shops for the same household sees one list, as it is right now",
  criteria: [
    {
      id: "open-room",
      kind: "functional",
      statement: "Whoever names a room on the first page gets into it, and the same name leads to the same list.",
    },
    {
      id: "add-items",
      kind: "functional",
      statement: "An item is added as people write it, such as 2 kg apples, and is shown at once with its amount.",
    },
    {
      id: "check-off",
      kind: "functional",
      statement: "Items can be checked off and removed, and the list says how far it is.",
    },
    {
      id: "kept-lists",
      kind: "functional",
      statement: "What is on a list is kept on the server and is there for whoever asks next.",
    },
    {
      id: "clear-refusals",
      kind: "functional",
      statement: "What makes no sense, such as a room without a name, is refused and changes nothing.",
    },
    {
      id: "live-updates",
      kind: "functional",
      statement:
        "A room shows how many people look at it, and what one of them changes, all of them see without a reload.",
    },
    {
      id: "phone-layout",
      kind: "visual",
      statement:
        "On a phone a list fills one column, nothing is cut off, and every button is large enough for a thumb.",
    },
    {
      id: "light-start",
      kind: "performance",
      statement: "The first page needs less than a megabyte to load, so that it opens in a shop's cellar, too.",
    },
  ],
  workflows: [
    {
      id: "shop-together",
      title: "Fill a list and shop",
      steps: ["Open a room", "Add two items", "Check one of them off", "Load the page again"],
      success: "The list says that one of two items is done.",
    },
    {
      id: "come-back",
      title: "Come back to a list",
      steps: ["Open a room", "Add an item", "Go to the first page", "Follow the room's link"],
      success: "The item is still on the list.",
    },
  ],
  identity: {
    mood: "A market stall in the morning: paper, leaves, something yellow",
    colours: ["#1f4d3a", "#fbf6ea", "#f6c445", "#b3371f"],
    typography: "A humanist sans-serif, large headings, figures of equal width",
    layout: "One column, the field for the next item first, the list below it",
  },
  antiPatterns: ["An account before the first list", "A button that does nothing", "Text too small for a shop's light"],
};
