package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// keptHead is the beginning of the index line in a log entry that is a copy of an older version.
const keptHead = `{"time":`

const keptBy = `,"by":`

const keptLine = `,"line":`

// KeptKey returns the log key for copies of older versions of the document whose log key is key.
func KeptKey(key string) string { return string(rune(Kept)) + key }

// KeptLine appends the index line of a log entry that is a copy of an older version. The line consists of three
// parts: micros, the commit time of that version in Unix microseconds; writer, the number of the version's writer,
// 0 if it is unknown; and line, the index line of the entry that made the version.
func KeptLine(dst []byte, micros int64, writer uint32, line []byte) []byte {
	dst = strconv.AppendInt(append(dst, keptHead...), micros, 10)
	if writer != 0 {
		dst = strconv.AppendUint(append(dst, keptBy...), uint64(writer), 10)
	}
	return append(append(append(dst, keptLine...), line...), '}')
}

// SplitKept splits the result of KeptLine into its arguments.
func SplitKept(b []byte) (micros int64, writer uint32, line []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptHead))
	head, line, found := bytes.Cut(rest, []byte(keptLine))
	if !ok || !found || len(line) == 0 || line[len(line)-1] != '}' {
		return 0, 0, nil, fmt.Errorf("%w: the index line of a copy of a version is malformed", errRecord)
	}
	time, number, named := bytes.Cut(head, []byte(keptBy))
	micros, err = strconv.ParseInt(string(time), 10, 64)
	if err != nil || strconv.FormatInt(micros, 10) != string(time) {
		return 0, 0, nil, fmt.Errorf("%w: a copy of a version has an invalid time: %.30q", errRecord, time)
	}
	if named {
		n, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != string(number) {
			return 0, 0, nil, fmt.Errorf("%w: a copy of a version has an invalid writer: %.30q", errRecord, number)
		}
		writer = uint32(n)
	}
	return micros, writer, line[:len(line)-1], nil
}

// Replaces returns the version that a document's log entry replaces or deletes, read from the entry's value. It returns
// 0 if the document did not exist before, or if the value is not a record.
func Replaces(value []byte) uint64 {
	if len(value) < headSize || value[0] != Version || value[1]&flagNew != 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(value[8:])
}

// CopyOf returns the version of which a log entry is a copy, read from the entry's value; 0 if the value is
// not a record.
func CopyOf(value []byte) uint64 {
	if len(value) < headSize || value[0] != Version {
		return 0
	}
	return binary.LittleEndian.Uint64(value[8:])
}
