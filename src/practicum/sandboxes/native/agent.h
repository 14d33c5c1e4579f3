// The parts of a box's first process, and what they share.
#pragma once
#include "base.h"

// Refusals of this program's own, beside the kernel's negative error numbers.
enum { REFUSED_PATH = -5001, REFUSED_DEPTH = -5002, REFUSED_KIND = -5003, REFUSED_SIZE = -5004, REFUSED_ENTRIES = -5005 };

// The two pipes to the host.
struct wire { int source, sink; struct buffer incoming; };
void wire_fill(struct wire *w);                              // reads once; the host's hanging up is the end
int wire_frame(struct wire *w, struct buffer *body);         // 1 if a whole frame was there
void wire_send(struct wire *w, struct buffer *frame);

i64 read_file(struct field path, i64 most, struct buffer *out);
i64 write_file(struct field path, u32 mode, struct field data);
i64 list_tree(struct field path, i64 most, struct buffer *out);

// Runs a command; `fields` are those of the request after its name. The whole answer is put into `out`. With `warm`, it
// is a copy of the warm process that runs it.
void run_command(struct wire *w, int children, struct field *fields, usize count, struct buffer *out, int warm);
i64 spawn_process(struct field *fields, usize count, const int *fds, usize fd_count);

// The process that is kept warm: started once, it makes copies of itself on request, and outlives `quiet`.
i64 warm_start(struct field *fields, usize count);
i64 warm_copy(struct field *fields, usize count, const int *streams); // the copy, which is a child of this process
i64 warm_ping(void); // whether it answers: 0, or an error; it is ended where it does not
i64 warm_pid(void); // 0 where there is none
void reap(struct rusage *into);
void remember(void);                                         // what this process was like when it started
i64 pristine(void);                                          // 0, or what would show in whatever comes next
i64 quiet(void);                                             // ends every other process of the box but the warm one
void list_processes(struct buffer *out);

int agent_main(void);
int hub_main(int argc, char **argv);
int hold_main(char **argv);
int become_main(char **argv, char **env);
