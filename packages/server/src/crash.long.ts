import { testLoopCrashes } from "./testing/loop-crashes.ts";

testLoopCrashes(200);
