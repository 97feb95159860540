/*
 * number.h - decimal text to double, fast where it is easy and exact always.
 *
 * Up to 19 digits that fit 53 bits, scaled by a power of ten up to 22, need one exact multiplication or
 * division (Clinger, "How to read floating point numbers accurately", PLDI 1990); all else goes to strtod.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>

#include "base/base.h"

/* The whole of text[0..len) must be a finite decimal number: "12", "-0.5", "1e9". No hexadecimal, no names, no spaces. */
bool number_parse(const char *text, size_t len, double *out);

enum number_fault { NUMBER_FINE, NUMBER_NONE, NUMBER_NEGATIVE, NUMBER_TOO_LARGE, NUMBER_INEXACT };

/* text[0..len) times 10^digits as a whole number: ("1.5", 3) is 1500, and "0.1" s is 100000000 ns, as no double could
   say. NUMBER_INEXACT: more digits were there, *out is rounded (half up). NUMBER_NONE: it is no decimal number. */
enum number_fault number_scaled(const char *text, size_t len, int digits, uint64_t *out);

/* The decimal text of fewest digits, but 15 at least, that reads as x, a finite number, without zeros at the end: what
   was written before it became a double. buf holds 32. Returns its length. */
int number_shortest(double x, char *buf);

#endif
