import { testTakeover } from "../testing/takeover.ts";

testTakeover("timers");
