/* wide.h - products of two numbers of 64 bits, which are rounded only after the division. */
#ifndef BASE_WIDE_H
#define BASE_WIDE_H

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wide_unsigned;

#endif
