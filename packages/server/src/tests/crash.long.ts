import { testLoopCrashes } from "../testing/loop-crashes.ts";

testLoopCrashes(200, "timers");
testLoopCrashes(50, "restate");
