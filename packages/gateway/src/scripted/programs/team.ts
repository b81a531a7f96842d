import type { ScriptedProgram, ScriptedRequest, Turn } from "../program.ts";
import { isSideCall, sideAnswer } from "../side-call.ts";

const tasks = [
  { title: "Write the greeting", details: "A file that greets.", path: "greeting.txt", content: "Hello!\n" },
  { title: "Write the farewell", details: "A file that says goodbye.", path: "farewell.txt", content: "Goodbye!\n" },
  { title: "Write the question", details: "A file that asks.", path: "question.txt", content: "How are you?\n" },
  { title: "Write the answer", details: "A file that answers.", path: "answer.txt", content: "Fine, thanks.\n" },
];

/** Two tasks, or four if the user asks for four. */
function tasksFor(prompt: string) {
  return tasks.slice(0, /\bfour\b/i.test(prompt) ? 4 : 2);
}

/** A lead hands out tasks, workers do one each and leave a note, and the lead reads the notes and finishes. */
export const team: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  // Only the lead can add tasks.
  if (!request.tools.some(isAddTasks)) return work(request);
  return hasHandedOut(request) ? close(request) : handOut(request);
};

function handOut({ prompt }: ScriptedRequest): Turn {
  const added = tasksFor(prompt).map(({ title, details }) => ({ title, details }));
  return { text: "I hand this out.", actions: [{ tool: "add_tasks", input: { tasks: added } }] };
}

function work({ step, lastPrompt }: ScriptedRequest): Turn {
  const task = tasks.find(({ title }) => lastPrompt.includes(title));
  if (!task) return { text: "This is no task of mine." };
  const { title, path, content } = task;
  switch (step) {
    case 0:
      return { text: title, actions: [{ write: path, content }] };
    case 1:
      return { text: "I leave a note.", actions: [{ tool: "write_note", input: { text: `${path} is written` } }] };
    default:
      return { text: `Done: ${path}` };
  }
}

/** In the turn that hands out, it only says so. Later turns read the results. */
function close({ step, results, prompt }: ScriptedRequest): Turn {
  const justHandedOut = step > 0 && results.some(({ tool }) => isAddTasks(tool));
  if (justHandedOut) return { text: "The tasks are handed out." };
  if (step === 0) return { text: "I read the notes.", actions: [{ tool: "read_notes", input: {} }] };
  return { text: `All ${tasksFor(prompt).length} tasks are done.` };
}

function hasHandedOut({ request }: ScriptedRequest): boolean {
  return request.messages.some(({ parts }) => parts.some((part) => part.type === "tool_call" && isAddTasks(part.name)));
}

function isAddTasks(tool: string): boolean {
  return tool.endsWith("add_tasks");
}
