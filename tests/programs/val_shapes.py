#!/usr/bin/env python3
"""Run blinkval on records of random shapes, and compare what it reports with
what their keys say when they are read as Python's numbers.

    val_shapes.py BLINKVAL ROUNDS SEED
"""

import functools
import math
import random
import struct
import subprocess
import sys
import zlib

NUMBERS = ['u8', 'i8'] + [
    kind + bits + end for end in ('', 'be')
    for kind, bits in (('u', '16'), ('u', '32'), ('u', '64'), ('u', '128'),
                       ('i', '16'), ('i', '32'), ('i', '64'), ('i', '128'),
                       ('f', '16'), ('bf', '16'), ('f', '32'), ('f', '64'))]
LETTERS = {'f16': 'e', 'f32': 'f', 'f64': 'd'}
FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, -math.nan]


class Key:
    """One --key of records of this size."""

    def __init__(self, size):
        self.type = random.choice(NUMBERS + ['slice'] * 10)
        if self.type == 'slice':
            self.length = random.randint(1, min(size, 300))
        else:
            self.length = int(
                self.type.removesuffix('be').lstrip('buif')) // 8
        if self.length > size:
            self.type, self.length = 'slice', size
        self.offset = random.randint(0, size - self.length)
        self.is_descending = random.random() < 0.4
        self.is_float = self.type[0] in 'fb'
        self.nans = (random.choice(['', 'nanlast', 'nanfirst'])
                     if self.is_float else '')

    def text(self):
        suffixes = ['desc'] * self.is_descending + [self.nans] * bool(self.nans)
        random.shuffle(suffixes)
        what = self.length if self.type == 'slice' else self.type
        return ':'.join([f'--key={self.offset}:{what}', *suffixes])

    def float_of(self, field):
        """From its bytes, the most significant first."""
        if self.type.startswith('bf16'):
            return struct.unpack('>f', field + bytes(2))[0]
        return struct.unpack(
            '>' + LETTERS[self.type.removesuffix('be')], field)[0]

    def float_bytes(self, number):
        """The same way back; a bfloat loses bits."""
        if self.type.startswith('bf16'):
            return struct.pack('>f', number)[:2]
        return struct.pack(
            '>' + LETTERS[self.type.removesuffix('be')], number)

    def value(self, record):
        field = record[self.offset:self.offset + self.length]
        if self.type == 'slice':
            return field
        order = 'big' if self.type.endswith('be') else 'little'
        if not self.is_float:
            return int.from_bytes(field, order, signed=self.type[0] == 'i')
        number = self.float_of(field if order == 'big' else field[::-1])
        if self.nans:
            return 0.0 if math.isnan(number) else number
        bits = int.from_bytes(field, order)
        sign = -1 if bits >> 8 * self.length - 1 else 1
        if math.isnan(number):
            payload = bits & (1 << 8 * self.length - 1) - 1
            return sign, sign * payload, 0
        return 0, number, sign

    def is_nan(self, record):
        field = record[self.offset:self.offset + self.length]
        return math.isnan(self.float_of(
            field if self.type.endswith('be') else field[::-1]))

    def compare(self, a, b, is_reversed):
        if self.nans:
            order = self.is_nan(a) - self.is_nan(b)
            if order:
                return order if self.nans == 'nanlast' else -order
        a, b = self.value(a), self.value(b)
        order = (a > b) - (a < b)
        return -order if self.is_descending != is_reversed else order

    def put(self, record):
        """Store a value that other records are likely to have, too."""
        if self.is_float:
            field = self.float_bytes(random.choice(FLOATS))
            if not self.type.endswith('be'):
                field = field[::-1]
        else:
            field = bytes([random.choice((0, 1, 127, 128, 255))]) * self.length
            at = random.randrange(self.length)
            field = (field[:at] + bytes([random.choice((0, 128, 255))])
                     + field[at + 1:])
        record[self.offset:self.offset + self.length] = field


class Case:
    def __init__(self):
        # A thread takes 400 KiB at a time: many records, a few, or one.
        self.size, count = random.choice(((random.randint(1, 40), 3000),
                                          (random.randint(100, 700), 3000),
                                          (random.randint(20000, 90000), 50),
                                          (random.randint(200000, 600000), 9)))
        self.keys = [Key(self.size) for _ in range(random.randint(1, 8))]
        self.is_reversed = random.random() < 0.3
        self.is_unique = random.random() < 0.3
        filling = random.randbytes(self.size)
        self.records = []
        for _ in range(random.randint(1, count)):
            record = bytearray(filling)
            record[random.randrange(self.size)] = random.randrange(256)
            for key in self.keys:
                key.put(record)
            self.records.append(bytes(record))
        self.inputs = list(self.records)
        if random.random() < 0.7:
            self.records.sort(key=functools.cmp_to_key(self.compare))
            for _ in range(random.choice((0, 0, 1, 2))):
                a = random.randrange(len(self.records))
                self.records.append(self.records.pop(a))
        self.spoil_inputs()

    def compare(self, a, b):
        for key in self.keys:
            order = key.compare(a, b, self.is_reversed)
            if order:
                return order
        return 0

    def spoil_inputs(self):
        how = random.choice(('none', 'equal', 'fewer', 'other'))
        if how == 'none':
            self.inputs = None
        elif how == 'fewer':
            self.inputs.pop()
        elif how == 'other':
            record = bytearray(self.inputs[0])
            record[random.randrange(self.size)] ^= 1
            self.inputs[0] = bytes(record)

    def arguments(self):
        arguments = [f'--record-size={self.size}']
        arguments += [key.text() for key in self.keys]
        arguments += ['-r'] * self.is_reversed + ['--unique'] * self.is_unique
        return arguments + [f'-t{random.randint(1, 4)}']

    def report(self):
        """The status, and the text."""
        orders = [self.compare(a, b)
                  for a, b in zip(self.records, self.records[1:])]
        unordered = [i + 1 for i, order in enumerate(orders) if order > 0]
        duplicates = orders.count(0)
        sums, lines, errors = sums_of(self.records), [], []
        if unordered:
            lines.append(f'First unordered record is record {unordered[0]}')
            errors.append(f'there are {len(unordered)} unordered records')
        lines += [f'Records: {sums[0]}', f'Checksum: {sums[1]:x}']
        if duplicates and self.is_unique:
            errors.append(f'there are {duplicates} duplicate keys')
        if self.inputs is not None:
            others = sums_of(self.inputs)
            lines += [f'Input records: {others[0]}',
                      f'Input checksum: {others[1]:x}']
            if sums[0] != others[0]:
                errors.append(f'there are {sums[0]} records, but {others[0]} '
                              'in the input')
            elif sums[1] != others[1]:
                errors.append(f'the checksum is {sums[1]:x}, but '
                              f'{others[1]:x} of the input')
        if not unordered:
            lines.append(f'Duplicate keys: {duplicates}')
        lines += [f'ERROR - {error}' for error in errors] or [
            'SUCCESS - all records are in order']
        return int(bool(errors)), '\n'.join(lines) + '\n'


def sums_of(records):
    return len(records), sum(zlib.crc32(record) for record in records)


def write_parts(name, records):
    """Some files, of which some may be empty; their names."""
    cuts = sorted(random.choices(range(len(records) + 1),
                                 k=random.randrange(4)))
    names = []
    for begin, end in zip([0] + cuts, cuts + [len(records)]):
        names.append(f'{name}{len(names)}')
        with open(names[-1], 'wb') as part:
            part.write(b''.join(records[begin:end]))
    return names


def run_round(program):
    case = Case()
    paths, piped = write_parts('part', case.records), b''
    arguments = case.arguments()
    if case.inputs is not None:
        arguments += [f'--against={path}'
                      for path in write_parts('input', case.inputs)]
    if random.random() < 0.3:
        at = random.randrange(len(paths))
        with open(paths[at], 'rb') as part:
            piped = part.read()
        paths[at] = '/dev/stdin'
    done = subprocess.run([program, *arguments, *paths], input=piped,
                          capture_output=True, check=False, timeout=600)
    want = case.report()
    # Hints follow the report: check_val.sh has them.
    said = (done.stdout + done.stderr).decode()
    got = done.returncode, said.partition('blinkval: ')[0]
    if got != want:
        print(f'{arguments} {paths}\nwant {want}\ngot  {got}')
        sys.exit(1)


def main():
    program, rounds, seed = sys.argv[1:]
    print(f'SEED={seed}')
    random.seed(int(seed))
    for _ in range(int(rounds)):
        run_round(program)


main()
