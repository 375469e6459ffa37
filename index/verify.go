package index

import (
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
)

// Verify reads all index files of a set and yields every error in them. If there is no error, Verify also checks that
// the sections agree. The counts must be right. Each memory with a session or an expiry must have a pair in by_session
// or by_expiry. Each member of an assembly must have a pair in members and in by_member. Each pair must belong to an
// existing memory or assembly, except that a member need not exist: see verifier.assembly.
func Verify(s *Set) iter.Seq[error] {
	return func(yield func(error) bool) {
		if sound, more := check(s, yield); sound && more {
			v := verifier{s: s, yield: yield}
			v.sections()
		}
	}
}

// VerifyBeside is like Verify, but compares the sections in another goroutine while the files are read.
func VerifyBeside(s *Set) iter.Seq[error] {
	return func(yield func(error) bool) {
		sections := make(chan []error, 1)
		go func() {
			var list []error
			v := verifier{s: s, yield: func(err error) bool {
				list = append(list, err)
				return len(list) < besideMost
			}}
			v.sections()
			sections <- list
		}()
		sound, more := check(s, yield)
		list := <-sections // of damaged files they are ignored
		for i := 0; sound && more && i < len(list); i++ {
			more = yield(list[i])
		}
	}
}

// besideMost is the maximum number of disagreements between sections that are kept until all files are read.
const besideMost = 1000

// check verifies the index files and yields each error that it finds. sound is true if check found no error. more
// is false if yield returned false, which ends the verification.
func check(s *Set, yield func(error) bool) (sound, more bool) {
	sound = true
	for _, t := range []*table.Table{s.Base(), s.Delta()} {
		if t == nil {
			continue
		}
		for err := range t.Check() {
			sound = false
			if !yield(err) {
				return false, false
			}
		}
	}
	return sound, true
}

type verifier struct {
	s     *Set
	yield func(error) bool
	buf   []byte
	bytes int64 // sum of the sizes of all memories

	// The keys of the sections by_session and by_expiry: lines has those that the lines of the memories require, and
	// pairs has those that the sections contain.
	bySession, byExpiry struct{ lines, pairs pairSum }
}

// pairSum describes a set of keys of the section by_session or by_expiry: the number of the keys, and the sum of their
// hashes. Two sets with the same pairSum are equal, except by chance. Verify compares the pairSum of the keys in a
// section with that of the keys that the lines of the memories require. Only if the two differ does Verify look up
// each key, to find the fault.
type pairSum struct {
	n   int64
	sum uint64
}

func (s *pairSum) add(key []byte) {
	s.n++
	s.sum += xxhash.Sum64(key)
}

// fault yields an error about the index as a whole, not about an offset in a file. It returns false if the caller
// stopped.
func (v *verifier) fault(format string, args ...any) bool {
	name := BaseName
	if v.s.Delta() != nil {
		name = DeltaName
	}
	return v.yield(&errs.CorruptionError{Path: name, Offset: -1, Err: fmt.Errorf(format, args...)})
}

func (v *verifier) sections() {
	for sec := range Schema().Sections {
		agrees := v.document
		if own := []func(Item) bool{v.memory, v.assembly, v.session, v.expiry, v.member, v.containing}; sec < len(own) {
			agrees = own[sec]
		}
		n := int64(0)
		for it, err := range v.s.Range(sec, Span{}) {
			if err != nil {
				v.yield(err)
				return
			}
			n++
			if !agrees(it) {
				return
			}
		}
		if n != v.s.Count(sec) &&
			!v.fault("section %d has %d entries, but %d according to the metadata", sec, n, v.s.Count(sec)) {
			return
		}
		if sum,
			known := MemoryBytes(v.s); sec == Memories && known && sum != v.bytes &&
			!v.fault("the memories have %d bytes, but %d according to the metadata", v.bytes, sum) {
			return
		}
	}
	if v.bySession.lines != v.bySession.pairs &&
		(!v.lookUp(Memories, v.inSession) || !v.lookUp(BySession, v.ofSession)) {
		return
	}
	if v.byExpiry.lines != v.byExpiry.pairs && v.lookUp(Memories, v.expires) {
		v.lookUp(ByExpiry, v.ofExpiry)
	}
}

// lookUp calls agrees for each entry of a section. It ends and returns false if agrees returns false, or if the
// section cannot be read.
func (v *verifier) lookUp(sec int, agrees func(Item) bool) bool {
	for it, err := range v.s.Range(sec, Span{}) {
		if err != nil {
			v.yield(err)
			return false
		}
		if !agrees(it) {
			return false
		}
	}
	return true
}

// document verifies the index line of a document of a kind that has no pairs in other sections.
func (v *verifier) document(item Item) bool {
	if _, err := ParseLine(item.Value); err != nil {
		return v.fault("%q: %w", item.Key, err)
	}
	return true
}

// memory verifies the index line of a memory. It adds the pairs that the memory must have in by_session and by_expiry
// to the expected sums, which are compared later.
func (v *verifier) memory(item Item) bool {
	e, err := ParseLine(item.Value)
	if err != nil {
		return v.fault("%q: %w", item.Key, err)
	}
	v.bytes += e.Size
	if e.SessionID != "" {
		v.buf = append(append(v.buf[:0], SessionPrefix(e.SessionID)...), item.Key...)
		v.bySession.lines.add(v.buf)
	}
	if !e.ExpiresAt.IsZero() {
		v.buf = append(append(v.buf[:0], ExpiryKey(e.ExpiresAt, "")...), item.Key...)
		v.byExpiry.lines.add(v.buf)
	}
	return true
}

// inSession verifies that a memory of a session has its pair in the section by_session. It skips an index line that
// cannot be parsed, because the method memory has already reported that line.
func (v *verifier) inSession(item Item) bool {
	e, err := ParseLine(item.Value)
	return err != nil || e.SessionID == "" || v.has(BySession, SessionKey(e.SessionID, string(item.Key))) ||
		v.fault("memory %q is missing in the section by_session", item.Key)
}

// expires verifies that a memory with an expiry has its pair in the section by_expiry. It skips an index line that
// cannot be parsed, because the method memory has already reported that line.
func (v *verifier) expires(item Item) bool {
	e, err := ParseLine(item.Value)
	return err != nil || e.ExpiresAt.IsZero() || v.has(ByExpiry, ExpiryKey(e.ExpiresAt, string(item.Key))) ||
		v.fault("memory %q is missing in the section by_expiry", item.Key)
}

// assembly verifies the index line and the pairs of an assembly. It does not verify that the members exist,
// because an import may name missing members.
func (v *verifier) assembly(item Item) bool {
	e, err := ParseLine(item.Value)
	if err != nil {
		return v.fault("%q: %w", item.Key, err)
	}
	if v.s.Base() != nil && !v.s.Base().Has(Members) {
		return true // the file is older than this section
	}
	members, err := Pairs(v.s, Members, string(item.Key))
	if err != nil {
		return v.fault("members of %q: %w", item.Key, err)
	}
	if int64(len(members)) != e.MemberCount {
		return v.fault("assembly %q has %d members, but the section members lists %d",
			item.Key, e.MemberCount, len(members))
	}
	return true
}

// member verifies an index pair of an assembly and a member: the opposite pair in the section by_member and the
// assembly must exist.
func (v *verifier) member(item Item) bool {
	assembly, id, ok := SplitMemberKey(string(item.Key))
	switch {
	case !ok:
		return v.fault("the section members has the malformed key %q", item.Key)
	case !v.has(Assemblies, assembly):
		return v.fault("the section members has the member %q of assembly %q, but this assembly does not exist", id,
			assembly)
	case !v.has(ByMember, MemberKey(id, assembly)):
		return v.fault("member %q of assembly %q is missing in the section by_member", id, assembly)
	}
	return true
}

func (v *verifier) containing(item Item) bool {
	id, assembly, ok := SplitMemberKey(string(item.Key))
	if !ok {
		return v.fault("the section by_member has the malformed key %q", item.Key)
	}
	if !v.has(Members, MemberKey(assembly, id)) {
		return v.fault("member %q of assembly %q is missing in the section members", id, assembly)
	}
	return true
}

func (v *verifier) has(sec int, key string) bool {
	_, ok, err := v.s.Get(nil, sec, key)
	return ok && err == nil
}

func (v *verifier) session(item Item) bool {
	if _, _, ok := SplitSessionKey(string(item.Key)); !ok {
		return v.fault("the section by_session has the malformed key %q", item.Key)
	}
	v.bySession.pairs.add(item.Key)
	return true
}

// ofSession verifies, for a pair in the section by_session, that the memory is in the session. It skips a malformed
// key, because the method session has already reported that key.
func (v *verifier) ofSession(item Item) bool {
	session, id, ok := SplitSessionKey(string(item.Key))
	if !ok {
		return true
	}
	if e, ok := v.entry(id); !ok || e.SessionID != session {
		return v.fault("memory %q is in session %q according to the section by_session, but not according to its "+
			"index line", id, session)
	}
	return true
}

func (v *verifier) expiry(item Item) bool {
	if _, _, ok := SplitExpiryKey(string(item.Key)); !ok {
		return v.fault("the section by_expiry has the malformed key %q", item.Key)
	}
	v.byExpiry.pairs.add(item.Key)
	return true
}

// ofExpiry verifies, for a pair in the section by_expiry, that the memory expires at the time in the pair. It skips a
// malformed key, because the method expiry has already reported that key.
func (v *verifier) ofExpiry(item Item) bool {
	at, id, ok := SplitExpiryKey(string(item.Key))
	if !ok {
		return true
	}
	if e, ok := v.entry(id); !ok || !e.ExpiresAt.Equal(at) {
		return v.fault("memory %q expires at %s according to the section by_expiry, but not according to its index "+
			"line", id, at.Format(nanoForm))
	}
	return true
}

func (v *verifier) entry(id string) (Entry, bool) {
	var ok bool
	var err error
	if v.buf, ok, err = v.s.Get(v.buf[:0], Memories, id); !ok || err != nil {
		return Entry{}, false
	}
	e, err := ParseLine(v.buf)
	return e, err == nil
}
