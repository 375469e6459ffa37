package replaced

import (
	"fmt"
	"strings"
	"sync"
)

// write is one answered operation that writes. The times are those of now.
type write struct {
	Op         string
	IDs        []string // the memories that it wrote
	Rev        int      // what their text contains, see text; it increases with each update of an id
	Begin, End int64
	Err        string // empty: acknowledged
	Replaced   bool   // the error is errs.ErrReplaced
}

// text is the content of a memory at a revision.
func text(id string, rev int) string { return fmt.Sprintf("%s rev %d.", id, rev) }

// revision returns the revision that a content of this id contains, 0 for a content of another.
func revision(id, content string) (rev int) {
	if _, rest, ok := strings.Cut(content, id+" rev "); ok {
		_, _ = fmt.Sscanf(rest, "%d.", &rev)
	}
	return rev
}

// record is the outside record of one process: every answer that it got, kept by the test.
type record struct {
	mu   sync.Mutex
	list []write
}

func (r *record) add(w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, w)
}

// all returns the answers so far.
func (r *record) all() []write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]write(nil), r.list...)
}

// acknowledged counts the memories in acknowledged writes.
func (r *record) acknowledged() (n int) {
	for _, w := range r.all() {
		if w.Err == "" {
			n += len(w.IDs)
		}
	}
	return n
}

// finding is a rule that a run has broken.
type finding struct {
	class string // see doc.go
	text  string
}

// findings collects the findings of a run.
type findings struct {
	mu   sync.Mutex
	list []finding
}

func (f *findings) add(class, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, finding{class, fmt.Sprintf(format, args...)})
}

func (f *findings) all() []finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]finding(nil), f.list...)
}
