/* main.h - what the commands of berth-sim share. */
#ifndef SIM_MAIN_H
#define SIM_MAIN_H

enum { EXIT_HELD = 0, EXIT_FAULT = 1, EXIT_WRONG = 2 };

/* Says what is wrong and how it is called; EXIT_WRONG. */
int wrong_use(const char *what);
int replay_main(int argc, char **argv);

#endif
