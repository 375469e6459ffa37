package index

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// ParseLine parses an index line, with or without what Finish adds, or a tombstone. It is strict: no white space, no
// duplicate members, numbers and strings as in JSON. Unknown members are skipped.
func ParseLine(line []byte) (Entry, error) {
	var e Entry
	s := scanner{b: line}
	seen := s.object(&e)
	if s.bad != "" || s.i != len(line) {
		if s.bad == "" {
			s.bad = "unexpected text after the object"
		}
		return Entry{}, fmt.Errorf("%w: %s at byte %d", errLine, s.bad, s.i)
	}
	switch {
	case e.Deleted && seen == hasDeleted|hasVersion && e.Version != 0:
	case !e.Deleted && seen&needed == needed && seen&hasDeleted == 0:
		if seen&hasDimension == 0 {
			e.Dimension = UnknownDimension
		}
	default:
		return Entry{}, fmt.Errorf("%w: missing members", errLine)
	}
	return e, nil
}

// MayExpire reports, without parsing, whether a line may be that of a memory with an expiry time. If MayExpire returns
// false, the line has no expiry time. MayExpire searches for the letter x, which no other member's name has.
func MayExpire(line []byte) bool {
	const before, after = `"e`, `pires_at":`
	for i := 0; ; i++ {
		n := bytes.IndexByte(line[i:], 'x')
		if n < 0 {
			return false
		}
		i += n
		if bytes.HasSuffix(line[:i], []byte(before)) && bytes.HasPrefix(line[i+1:], []byte(after)) {
			return true
		}
	}
}

// The members that an index line may have, as bits of a set.
const (
	hasFilepath = 1 << iota
	hasCreated
	hasUpdated
	hasScore
	hasMembers
	hasHash
	hasSize
	hasMtime
	hasVersion
	hasSession
	hasExpires
	hasDeleted
	hasDimension
	hasVector
	hasBy

	needed = hasFilepath | hasHash | hasSize
)

// object parses the members of a JSON object into e. The result has the bit of each member that is present; see the
// method member.
func (s *scanner) object(e *Entry) (seen int) {
	s.need('{')
	if s.take('}') {
		return 0
	}
	for s.bad == "" {
		name := s.str()
		s.need(':')
		if s.bad != "" {
			break
		}
		bit := s.member(e, name)
		if seen&bit != 0 {
			s.fail("duplicate member")
		}
		seen |= bit
		if s.take('}') {
			break
		}
		s.need(',')
	}
	return seen
}

// member parses the value of one JSON member into e and returns the member's bit; 0 for an unknown member.
func (s *scanner) member(e *Entry, name []byte) int {
	switch string(name) {
	case "filepath":
		e.Filepath = string(s.str())
		return hasFilepath
	case "created_at":
		e.CreatedAt = s.time()
		return hasCreated
	case "updated_at":
		e.UpdatedAt = s.time()
		return hasUpdated
	case "quickrecal_score":
		e.Score = s.float()
		return hasScore
	case "member_count":
		e.MemberCount = s.integer()
		return hasMembers
	case "content_hash":
		s.hash(&e.ContentHash)
		return hasHash
	case "size":
		e.Size = s.integer()
		return hasSize
	case "mtime":
		e.Mtime = s.integer()
		return hasMtime
	case "version":
		e.Version = s.unsigned()
		return hasVersion
	case "by":
		n := s.unsigned()
		if n == 0 || n > math.MaxUint32 {
			s.fail("the number of the writer is not from 1 to 4294967295")
		}
		e.By = uint32(n)
		return hasBy
	case "dimension":
		e.Dimension = s.dimension()
		return hasDimension
	case "vector_id":
		if e.VectorID = s.integer(); e.VectorID <= 0 {
			s.fail("the number of the vector is less than 1")
		}
		return hasVector
	case "session_id":
		e.SessionID = string(s.str())
		return hasSession
	case "expires_at":
		e.ExpiresAt = s.time()
		return hasExpires
	case "deleted":
		if s.i+4 <= len(s.b) && string(s.b[s.i:s.i+4]) == "true" {
			e.Deleted = true
		}
		s.skip(0)
		return hasDeleted
	}
	s.skip(0)
	return 0
}

func (s *scanner) dimension() int {
	n := s.integer()
	if n < 0 || n > math.MaxInt32 {
		s.fail("not a dimension")
		return 0
	}
	return int(n)
}

func (s *scanner) hash(h *[32]byte) {
	const head = "sha256:"
	b := s.str()
	if len(b) != len(head)+64 || string(b[:len(head)]) != head {
		s.fail("not a sha256")
		return
	}
	for i := range h {
		hi, lo := unhex(b[len(head)+2*i]), unhex(b[len(head)+2*i+1])
		if hi|lo > 15 {
			s.fail("not a sha256")
			return
		}
		h[i] = hi<<4 | lo
	}
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

func (s *scanner) time() time.Time {
	b := s.str()
	if s.bad != "" {
		return time.Time{}
	}
	var t time.Time
	if err := t.UnmarshalText(b); err != nil { // strict RFC 3339
		s.fail("not an RFC 3339 time")
	}
	return t.UTC()
}
