/*
 * key_order.h - the stable order of many keys that lie side by side
 */
#ifndef KEY_ORDER_H
#define KEY_ORDER_H

#include <stdint.h>

#include "base/cpu.h"
#include "record/record.h"

struct failure;

/* The numbers of keys[0 .. count), each shape->size bytes, in the order of the
 * keys; equal ones as they lie.  The caller frees them, room for as many words
 * of 64 bits.  NULL: *failure is filled. */
uint32_t *key_order_make(const struct record_shape *shape, const uint8_t *keys,
			 uint32_t count, enum cpu_level kernel,
			 struct failure *failure);

#endif /* KEY_ORDER_H */
