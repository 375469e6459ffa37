package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// keptHead begins the line of a kept version.
const keptHead = `{"time":`

const keptLine = `,"line":`

// KeptKey is that of the copies of a document's versions, of which key is the key.
func KeptKey(key string) string { return string(rune(Kept)) + key }

// KeptLine appends the line of a kept version: when it was committed, in Unix microseconds, and
// the line that its own entry had.
func KeptLine(dst []byte, micros int64, line []byte) []byte {
	dst = strconv.AppendInt(append(dst, keptHead...), micros, 10)
	return append(append(append(dst, keptLine...), line...), '}')
}

// SplitKept is what KeptLine has put together.
func SplitKept(b []byte) (micros int64, line []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptHead))
	time, line, found := bytes.Cut(rest, []byte(keptLine))
	if !ok || !found || len(line) == 0 || line[len(line)-1] != '}' {
		return 0, nil, fmt.Errorf("%w: not the line of a kept version", errRecord)
	}
	micros, err = strconv.ParseInt(string(time), 10, 64)
	if err != nil || strconv.FormatInt(micros, 10) != string(time) {
		return 0, nil, fmt.Errorf("%w: the time of a kept version: %.30q", errRecord, time)
	}
	return micros, line[:len(line)-1], nil
}

// Replaces is the version that the entry of a document replaces or deletes, as its value says; 0
// when there was none, or that is no record.
func Replaces(value []byte) uint64 {
	if len(value) < headSize || value[0] != Version || value[1]&flagNew != 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(value[8:])
}
