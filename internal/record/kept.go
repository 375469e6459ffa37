package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// keptHead is the beginning of the line of a kept version.
const keptHead = `{"time":`

const keptBy = `,"by":`

const keptLine = `,"line":`

// KeptKey returns the key in the log for kept copies of the versions of a document; key is the key of the
// document.
func KeptKey(key string) string { return string(rune(Kept)) + key }

// KeptLine appends the line of a kept version to dst. It consists of the commit time of the version, in Unix
// microseconds, the number of its writer, 0 if unknown, and the line of its own entry.
func KeptLine(dst []byte, micros int64, by uint32, line []byte) []byte {
	dst = strconv.AppendInt(append(dst, keptHead...), micros, 10)
	if by != 0 {
		dst = strconv.AppendUint(append(dst, keptBy...), uint64(by), 10)
	}
	return append(append(append(dst, keptLine...), line...), '}')
}

// SplitKept splits the line of a kept version into the arguments of KeptLine.
func SplitKept(b []byte) (micros int64, by uint32, line []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptHead))
	head, line, found := bytes.Cut(rest, []byte(keptLine))
	if !ok || !found || len(line) == 0 || line[len(line)-1] != '}' {
		return 0, 0, nil, fmt.Errorf("%w: not the line of a kept version", errRecord)
	}
	time, number, named := bytes.Cut(head, []byte(keptBy))
	micros, err = strconv.ParseInt(string(time), 10, 64)
	if err != nil || strconv.FormatInt(micros, 10) != string(time) {
		return 0, 0, nil, fmt.Errorf("%w: the time of a kept version: %.30q", errRecord, time)
	}
	if named {
		n, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != string(number) {
			return 0, 0, nil, fmt.Errorf("%w: the writer of a kept version: %.30q", errRecord, number)
		}
		by = uint32(n)
	}
	return micros, by, line[:len(line)-1], nil
}

// Replaces returns the version that the entry of a document replaces or deletes, according to the value of the
// entry; 0 if there was none, or the value is not a record.
func Replaces(value []byte) uint64 {
	if len(value) < headSize || value[0] != Version || value[1]&flagNew != 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(value[8:])
}

// CopyOf returns the version that the entry of a kept version is a copy of, according to the value of the
// entry; 0 if the value is not a record.
func CopyOf(value []byte) uint64 {
	if len(value) < headSize || value[0] != Version {
		return 0
	}
	return binary.LittleEndian.Uint64(value[8:])
}
