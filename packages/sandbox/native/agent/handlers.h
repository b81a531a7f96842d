/* pid 1's children: the handlers, the egress forwarder and the sweeper of strays. */
#pragma once
#include "agent.h"

void handlers_open(void);
/* Forks a handler that takes over the connection; false: no process or slot is left. */
bool handler_start(unsigned char op, int connection);
/* Hands a control connection to the exec's handler: 0 or an errno. */
int handler_route(const char *id, int connection);
/* How many operations count as use, and when one last did. */
unsigned handlers_in_use(int64_t *last_use_ms);
void handlers_reap(bool asleep);
/* When to call handlers_reap even if no child ends; INT64_MAX: never. */
int64_t handlers_deadline_ms(bool asleep);
