package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// record has what the clients know about memories. For each path of a client's own memory it has the content that was
// acknowledged last, and the contents of writes without an answer. The content of a deleted memory is "".
type record struct {
	mu           sync.Mutex
	own          map[string]*recorded
	shared       map[string]*history
	acknowledged map[string]int // by kind
	errors       map[int]int    // by status
	first        map[int]string // text of the first error, by status
	conflicts    int
	unanswered   int
}

type recorded struct {
	content      string
	maybe        map[string]bool
	acknowledged bool // at least one write of it
}

// history has the acknowledged contents of a shared memory by the content on whose condition they were written. All
// contents differ.
type history struct {
	id   string
	from map[string][]string // hashes of contents by the hash of the condition
	sent map[string]bool     // hashes of all contents that were sent
}

func newRecord() *record {
	return &record{own: map[string]*recorded{}, shared: map[string]*history{}, acknowledged: map[string]int{},
		errors: map[int]int{}, first: map[int]string{}}
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// begin records that a write is sent.
func (r *record) begin(path, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own[path] == nil {
		r.own[path] = &recorded{maybe: map[string]bool{}}
	}
	r.own[path].maybe[content] = true
}

// beginShared records that an update of a shared memory is sent.
func (r *record) beginShared(path, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared[path].sent[hashOf(content)] = true
}

// done records that a write was acknowledged.
func (r *record) done(kind, path, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[path] = &recorded{content: content, maybe: map[string]bool{}, acknowledged: true}
	r.acknowledged[kind]++
}

// doneShared records that an update of a shared memory was acknowledged.
func (r *record) doneShared(path, content, condition string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.shared[path]
	h.from[condition] = append(h.from[condition], hashOf(content))
	r.acknowledged["updates of shared memories"]++
}

// refused records an answer that acknowledges nothing.
func (r *record) refused(a *answer, byPath bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.unknown():
		r.unanswered++
	case a.conflict(byPath):
		r.conflicts++
	default:
		if r.errors[a.status]++; r.first[a.status] == "" {
			r.first[a.status] = a.text[:min(len(a.text), 300)]
		}
	}
}

// report compares the record with what the server has, and prints the result.
func (r *record) report(ctx context.Context, c *api) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, n := range r.acknowledged {
		sum += n
	}
	fmt.Printf("acknowledged: %d", sum)
	for _, kind := range slices.Sorted(maps.Keys(r.acknowledged)) {
		fmt.Printf(", %d %s", r.acknowledged[kind], kind)
	}
	fmt.Printf("\nconflicts: %d\nunanswered: %d\n", r.conflicts, r.unanswered)
	for _, status := range slices.Sorted(maps.Keys(r.errors)) {
		fmt.Printf("errors: %d with status %d: %s\n", r.errors[status], status, r.first[status])
	}
	listed, err := c.list(ctx, "/memories", "")
	if err != nil {
		return err
	}
	at := map[string]memory{}
	unreadable, inconsistent := 0, 0
	for _, m := range listed {
		switch a := c.get(ctx, m.ID); {
		case !a.ok() || a.memory.Content == nil:
			if unreadable++; unreadable <= 5 {
				fmt.Printf("unreadable: %s: %d %.200s\n", m.Path, a.status, a.text)
			}
		case hashOf(*a.memory.Content) != a.memory.Hash:
			if inconsistent++; inconsistent <= 5 {
				fmt.Printf("inconsistent: %s: content %.60q, content_sha256 %s\n", m.Path,
					*a.memory.Content, a.memory.Hash)
			}
			fallthrough
		default:
			m.Content, m.Hash = a.memory.Content, a.memory.Hash
		}
		if twice, ok := at[m.Path]; ok {
			fmt.Printf("two memories of one path: %s and %s of %s\n", twice.ID, m.ID, m.Path)
		}
		at[m.Path] = m
	}
	fmt.Printf("double wins: %d\n", r.doubleWins())
	lost := r.lostOwn(at)
	missing, err := r.lostShared(ctx, c, at)
	if err != nil {
		return err
	}
	known := 0
	for _, d := range r.own {
		if d.acknowledged {
			known++
		}
	}
	fmt.Printf("lost: %d of %d memories, %d of %d acknowledged contents of shared memories\n", lost, known, missing,
		r.acknowledged["updates of shared memories"])
	fmt.Printf("unreadable: %d, inconsistent: %d, of %d memories that are listed\n", unreadable, inconsistent,
		len(listed))
	return nil
}

// doubleWins returns how many conditions were acknowledged to more than one client.
func (r *record) doubleWins() (n int) {
	for path, h := range r.shared {
		for condition, won := range h.from {
			if len(won) > 1 {
				if n++; n <= 5 {
					fmt.Printf("won by %d clients: %s at %s\n", len(won), path, condition)
				}
			}
		}
	}
	return n
}

// lostOwn returns how many memories of single clients have another content than the acknowledged one and those that
// may have been written after it. It prints the first of them.
func (r *record) lostOwn(at map[string]memory) (n int) {
	for path, d := range r.own {
		have := ""
		if m, ok := at[path]; ok && m.Content != nil {
			have = *m.Content
		}
		if have != d.content && !d.maybe[have] {
			if n++; n <= 5 {
				fmt.Printf("lost: %s is %q, want %q or one of %q\n", path, have, d.content,
					slices.Collect(maps.Keys(d.maybe)))
			}
		}
	}
	return n
}

// lostShared returns how many acknowledged contents of shared memories are not in their histories. A content on which a
// later update was acknowledged must not be the current one either.
func (r *record) lostShared(ctx context.Context, c *api, at map[string]memory) (n int, err error) {
	for path, h := range r.shared {
		current := at[path].Hash
		if !h.sent[current] || len(h.from[current]) > 0 {
			fmt.Printf("lost: %s has the content %q, on which an update was acknowledged, or which no client wrote\n",
				path, current)
			n++
		}
		if c.byPath {
			continue // such a server has no list of versions
		}
		versions, err := c.list(ctx, "/memory_versions", "&memory_id="+h.id)
		if err != nil {
			return n, err
		}
		there := map[string]bool{}
		for _, v := range versions {
			there[v.Hash] = true
		}
		for _, contents := range h.from {
			for _, hash := range contents {
				if !there[hash] {
					n++
				}
			}
		}
	}
	return n, nil
}
