package index

import (
	"bytes"
	"errors"
	"fmt"
)

var errLine = errors.New("not an index line")

var sizeMember = []byte(`,"size":`)

// Finish appends a record's line to dst: with mtime (unix microseconds), version and the number of the writer (0 for
// none) inserted after size, and without members, which end the line of an assembly in the log. The line is not parsed
// again, because it comes from a verified record. Inside a JSON string every quote has a backslash before it, so
// ,"size": can only be the member.
func Finish(dst, line []byte, version uint64, mtime int64, by uint32) ([]byte, error) {
	at := bytes.Index(line, sizeMember)
	if at < 0 || !bytes.HasPrefix(line, []byte(`{"filepath":"`)) || line[len(line)-1] != '}' ||
		bytes.IndexByte(line, '\n') >= 0 {
		return dst, fmt.Errorf("%w: %.60q", errLine, line)
	}
	digits := at + len(sizeMember)
	end := digits
	for line[end] >= '0' && line[end] <= '9' { // the closing } ends it at the latest
		end++
	}
	if end == digits || line[end] != ',' && end != len(line)-1 || bytes.HasPrefix(line[end:], []byte(`,"mtime":`)) {
		return dst, fmt.Errorf("%w: the size is not followed by the session, the expiry or the end: %.60q", errLine, line)
	}
	dst = append(dst, line[:end]...)
	dst = appendStamp(dst, version, mtime, by)
	rest := line[end:]
	if at := bytes.Index(rest, membersMember); at >= 0 {
		return append(append(dst, rest[:at]...), '}'), nil
	}
	return append(dst, rest...), nil
}
