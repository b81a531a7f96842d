#ifndef SLIPWAY_LAUNCH_BOX_H
#define SLIPWAY_LAUNCH_BOX_H

/* A sandbox's host directory and its listening socket, opened. */
struct box {
	int directory, agent_socket;
};
/* Makes what is missing. */
struct box open_box(const char *path);
/* Makes the spare the box at `path`, unless that exists: a restart has its own. A spare saves the time to make directories. */
struct box take_spare(const char *spare_path, struct box spare, const char *path);
/* For a box that nothing has used yet. */
void remove_box(const char *path);

#endif
