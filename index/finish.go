package index

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

var errLine = errors.New("not an index line")

var sizeMember = []byte(`,"size":`)

// Finish turns the index line in a log record into a complete index line, and appends the result to dst. After the
// JSON member size, Finish inserts the JSON members mtime (Unix microseconds), version, and by, which has the value
// writer, the number of the writer. If writer is 0, Finish omits by. Finish removes the JSON member members, which
// ends the line of an assembly in the log. A line that already has an mtime keeps that mtime: the file existed before
// the version.
//
// Finish does not parse the line again, because the line comes from a verified record. Inside a JSON string every
// quote has a backslash before it, so ,"size": can only be the JSON member.
func Finish(dst, line []byte, version uint64, mtime int64, writer uint32) ([]byte, error) {
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
	rest := line[end:]
	if own, ok := bytes.CutPrefix(rest, mtimeMember); ok { // the time of the file that was adopted
		n := 0
		for mtime = 0; n < len(own) && own[n] >= '0' && own[n] <= '9' && n < 18; n++ {
			mtime = 10*mtime + int64(own[n]-'0')
		}
		if rest = own[n:]; n == 0 || bytes.HasPrefix(rest, versionMember) {
			return dst, fmt.Errorf("%w: the line already has a version, or has no time: %.60q", errLine, line)
		}
	}
	if end == digits || len(rest) == 0 || rest[0] != ',' && len(rest) != 1 {
		return dst, fmt.Errorf("%w: the size must be followed by the session, the expiry or the end of the line: "+
			"%.60q", errLine, line)
	}
	dst = append(dst, line[:end]...)
	dst = appendStamp(dst, version, mtime, writer)
	if at := bytes.Index(rest, membersMember); at >= 0 {
		return append(append(dst, rest[:at]...), '}'), nil
	}
	return append(dst, rest...), nil
}

// HasMtime reports whether the index line in a log record already has the modification time of a file; see
// WithMtime.
func HasMtime(line []byte) bool {
	at := bytes.Index(line, sizeMember)
	if at < 0 {
		return false
	}
	for at += len(sizeMember); at < len(line) && line[at] >= '0' && line[at] <= '9'; at++ {
	}
	return bytes.HasPrefix(line[at:], mtimeMember)
}

// WithMtime returns the index line of a log record with the modification time of a file (Unix microseconds)
// added. The version then keeps that time. If the line has no size, or if mtime is not above 0 and below 1e17,
// WithMtime returns the line unchanged.
func WithMtime(line []byte, mtime int64) []byte {
	at := bytes.Index(line, sizeMember)
	if at < 0 || mtime <= 0 || mtime >= 1e17 {
		return line
	}
	end := at + len(sizeMember)
	for end < len(line) && line[end] >= '0' && line[end] <= '9' {
		end++
	}
	out := append(make([]byte, 0, len(line)+32), line[:end]...)
	out = strconv.AppendInt(append(out, mtimeMember...), mtime, 10)
	return append(out, line[end:]...)
}
