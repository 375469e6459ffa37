package index

import (
	"fmt"
	"iter"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
)

// Verify reads all index files of a set and yields every error in them. If there is none, it verifies that the
// sections agree: the counts, a pair for each session, expiry and member, and no pair without its memory or
// assembly. A member need not exist: see assembly.
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

// besideMost is how many errors in the agreement of the sections are kept until the files are read.
const besideMost = 1000

// check reads the index files and yields their errors. sound reports whether there were none; more is false if
// the caller stopped.
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
	bytes int64 // sum of the sizes of memories
}

// fault yields an error about the index that belongs to no offset in a file. It returns false if the caller
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
		if n != v.s.Count(sec) && !v.fault("section %d has %d entries, but the metadata count %d", sec, n, v.s.Count(sec)) {
			return
		}
		if sum,
			known := MemoryBytes(v.s); sec == Memories && known && sum != v.bytes &&
			!v.fault("the memories have %d bytes, but the metadata count %d", v.bytes, sum) {
			return
		}
	}
}

// document verifies the index line of a document of a kind that has no pairs in other sections.
func (v *verifier) document(it Item) bool {
	if _, err := ParseLine(it.Value); err != nil {
		return v.fault("%q: %w", it.Key, err)
	}
	return true
}

// memory verifies the index line of a memory and the pairs for its session and expiry.
func (v *verifier) memory(it Item) bool {
	e, err := ParseLine(it.Value)
	if err != nil {
		return v.fault("%q: %w", it.Key, err)
	}
	v.bytes += e.Size
	id := string(it.Key)
	if e.SessionID != "" && !v.has(BySession, SessionKey(e.SessionID, id)) &&
		!v.fault("%q is missing in the section by_session", id) {
		return false
	}
	if !e.ExpiresAt.IsZero() && !v.has(ByExpiry, ExpiryKey(e.ExpiresAt, id)) &&
		!v.fault("%q is missing in the section by_expiry", id) {
		return false
	}
	return true
}

// assembly verifies the index line and the pairs of an assembly. It does not check that the members exist: an
// import may name missing ones.
func (v *verifier) assembly(it Item) bool {
	e, err := ParseLine(it.Value)
	if err != nil {
		return v.fault("%q: %w", it.Key, err)
	}
	if v.s.Base() != nil && !v.s.Base().Has(Members) {
		return true // the file is older than this section
	}
	members, err := Pairs(v.s, Members, string(it.Key))
	if err != nil {
		return v.fault("members of %q: %w", it.Key, err)
	}
	if int64(len(members)) != e.MemberCount {
		return v.fault("assembly %q has %d members, but the section members lists %d", it.Key, e.MemberCount, len(members))
	}
	return true
}

// member verifies an index pair of an assembly and a member: the opposite pair and the assembly must exist.
func (v *verifier) member(it Item) bool {
	assembly, id, ok := SplitMemberKey(string(it.Key))
	switch {
	case !ok:
		return v.fault("the section members has the malformed key %q", it.Key)
	case !v.has(Assemblies, assembly):
		return v.fault("the section members has %q of assembly %q, which does not exist", id, assembly)
	case !v.has(ByMember, MemberKey(id, assembly)):
		return v.fault("%q in assembly %q is missing in the section by_member", id, assembly)
	}
	return true
}

func (v *verifier) containing(it Item) bool {
	id, assembly, ok := SplitMemberKey(string(it.Key))
	if !ok {
		return v.fault("the section by_member has the malformed key %q", it.Key)
	}
	if !v.has(Members, MemberKey(assembly, id)) {
		return v.fault("%q in assembly %q is missing in the section members", id, assembly)
	}
	return true
}

func (v *verifier) has(sec int, key string) bool {
	_, ok, err := v.s.Get(nil, sec, key)
	return ok && err == nil
}

func (v *verifier) session(it Item) bool {
	session, id, ok := SplitSessionKey(string(it.Key))
	if !ok {
		return v.fault("the section by_session has the malformed key %q", it.Key)
	}
	if e, ok := v.entry(id); !ok || e.SessionID != session {
		return v.fault("%q is in session %q in the section by_session, but not in its index line", id, session)
	}
	return true
}

func (v *verifier) expiry(it Item) bool {
	at, id, ok := SplitExpiryKey(string(it.Key))
	if !ok {
		return v.fault("the section by_expiry has the malformed key %q", it.Key)
	}
	if e, ok := v.entry(id); !ok || !e.ExpiresAt.Equal(at) {
		return v.fault("%q expires at %s in the section by_expiry, but not in its index line", id, at.Format(nanoForm))
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
