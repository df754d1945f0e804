/* The names the library exports, as the Makefile reads them from it: names.c is made. */
#ifndef GPUSIM_NAMES_H
#define GPUSIM_NAMES_H

struct name {
    const char *text;
    void (*function)(void);
};

extern const struct name names[];

#endif
