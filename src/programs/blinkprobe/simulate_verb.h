/*
 * simulate_verb.h - blinkprobe simulate: its options, and what it prints
 */
#ifndef SIMULATE_VERB_H
#define SIMULATE_VERB_H

/* words: those behind "simulate", ended by NULL.  Returns the exit status. */
int simulate_verb_run(char **words);

#endif /* SIMULATE_VERB_H */
