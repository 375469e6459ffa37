package fuzz

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

const dir = "/store"

// known returns the memories in the history.
func (h *history) known() []string {
	var list []string
	for _, w := range h.writes {
		list = append(list, w.id)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// calm checks everything while no other process works: the memories, and whether lists, counts and raw
// bytes agree. raw has the bytes by id.
func (a *actor) calm() (raw map[string][]byte) {
	for again := true; again; {
		func() {
			began, wrong := a.now(), len(a.h.wrong)
			defer func() { // also if the power is cut meanwhile, which ends the goroutine
				expired := func(w *write) bool { return w.expires.After(began) && !w.expires.After(a.now()) }
				if again = len(a.h.wrong) > wrong && slices.ContainsFunc(a.h.writes, expired); again {
					a.h.wrong = a.h.wrong[:wrong] // something expired during the check
				}
			}()
			raw = a.calmOnce()
		}()
	}
	return raw
}

func (a *actor) calmOnce() (raw map[string][]byte) {
	raw = map[string][]byte{}
	sessions := map[string]int64{}
	list := slices.DeleteFunc(a.list(), func(m varve.Memory) bool { return a.h.harmed[m.ID] })
	for i, m := range list {
		if i > 0 && list[i-1].ID == m.ID {
			a.h.bad("%s: %.20q is listed twice", a.name, m.ID)
		}
	}
	listed := 0
	for i, id := range a.h.known() {
		if a.h.bulk[id] && i%8 != a.h.tick%8 {
			// The listing has checked it; that is enough for most memories that never change.
			if _, ok := slices.BinarySearchFunc(list, id, func(m varve.Memory, id string) int { return strings.Compare(m.ID, id) }); ok {
				listed++
			}
			continue
		}
		m, err := a.get(id)
		if a.h.harmed[id] {
			continue
		}
		b, rawErr := a.st.Admin().GetRaw(ctx, id)
		if (err == nil) != (rawErr == nil) || err != nil && !errors.Is(rawErr, varve.ErrNotFound) {
			a.h.bad("%s: %.20q: Get says %v, GetRaw %v", a.name, id, err, rawErr)
		}
		if err != nil || rawErr != nil {
			continue
		}
		raw[id] = b
		if !bytes.Contains(b, []byte(tokenOf(m.Content))) {
			a.h.bad("%s: %.20q: GetRaw has other content than Get", a.name, id)
		}
		sessions[m.Session()]++
	}
	delete(sessions, "")
	for id := range raw {
		if !slices.ContainsFunc(list, func(m varve.Memory) bool { return m.ID == id }) {
			a.h.bad("%s: %.20q is there, and not listed", a.name, id)
		}
	}
	if len(list) != len(raw)+listed {
		a.h.bad("%s: %d are listed, %d are there", a.name, len(list), len(raw)+listed)
	}
	if len(a.h.harmed) > 0 {
		return raw // the numbers have theirs in it
	}
	a.ordered(list, sessions)
	if a.h.labelled {
		a.worded(list)
	}
	if n, err := a.st.Count(ctx); err != nil || n != int64(len(list)) {
		a.h.bad("%s: Count is %d (%v), %d are there; %+v", a.name, n, err, len(list), a.st.Admin().OpenReport())
	}
	for _, s := range []string{"s1", "s2"} {
		if n, err := a.st.Count(ctx, varve.InSession(s)); err != nil || n != sessions[s] {
			a.h.bad("%s: Count of session %s is %d (%v), %d are there", a.name, s, n, err, sessions[s])
		}
	}
	return raw
}

// settled checks the files after a flush: each memory has one, with the right bytes and mtime, there are
// no others, and the index names exactly these. Expired memories may still have a file.
func (a *actor) settled(fsys vfs.FS, raw map[string][]byte) {
	text, err := vfs.ReadFile(fsys, filepath.Join(a.h.dir, "memory_index.json"), 1<<30)
	if err != nil {
		a.h.bad("%s: %v", a.name, err)
		return
	}
	var ix struct {
		Memories map[string]struct {
			Filepath    string `json:"filepath"`
			ContentHash string `json:"content_hash"`
			Size        int64  `json:"size"`
			Mtime       int64  `json:"mtime"`
			Version     uint64 `json:"version"`
			ExpiresAt   string `json:"expires_at"`
		} `json:"memories"`
		Metadata struct {
			Count int `json:"memory_count"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &ix); err != nil {
		a.h.bad("%s: memory_index.json: %v", a.name, err)
		return
	}
	if _, err := fsys.Stat(filepath.Join(a.h.dir, "memory_index.delta.json")); err == nil {
		a.h.bad("%s: a delta is left after Flush", a.name)
	}
	if ix.Metadata.Count != len(ix.Memories) {
		a.h.bad("%s: memory_index.json counts %d, has %d", a.name, ix.Metadata.Count, len(ix.Memories))
	}
	expected := map[string]bool{}
	for id, line := range ix.Memories {
		name := jsondoc.FileName(id)
		expected[name] = true
		b, ok := raw[id]
		if !ok && a.h.bulk[id] || a.h.harmed[id] {
			continue
		}
		if !ok {
			if line.ExpiresAt == "" {
				a.h.bad("%s: memory_index.json names %.20q, which is not there", a.name, id)
			}
			continue
		}
		sum := sha256.Sum256(b)
		if line.ContentHash != "sha256:"+hex.EncodeToString(sum[:]) || line.Size != int64(len(b)) || line.Filepath != "memories/"+name {
			a.h.bad("%s: the index line of %.20q does not fit", a.name, id)
		}
		path := filepath.Join(a.h.dir, "memories", name)
		file, err := vfs.ReadFile(fsys, path, 1<<30)
		if err != nil || !bytes.Equal(file, b) {
			a.h.bad("%s: the file of %.20q does not have its bytes: %d and %d, %v", a.name, id, len(file), len(b), err)
			continue
		}
		if info, err := fsys.Stat(path); err != nil || info.Mtime.UnixMicro() != line.Mtime {
			a.h.bad("%s: the file of %.20q has the time %v, not %d (%v)", a.name, id, info.Mtime, line.Mtime, err)
		}
	}
	for id := range raw {
		if _, ok := ix.Memories[id]; !ok {
			a.h.bad("%s: memory_index.json does not name %.20q", a.name, id)
		}
	}
	a.lettered(fsys, slices.Sorted(maps.Keys(ix.Memories)))
	names, err := fsys.ReadDir(filepath.Join(a.h.dir, "memories"))
	if err != nil {
		a.h.bad("%s: %v", a.name, err)
	}
	for id := range a.h.harmed {
		expected[jsondoc.FileName(id)] = true
	}
	for _, name := range names {
		if !expected[name] && !a.h.edited(fsys, name) {
			a.h.bad("%s: memories/%s is nobody's", a.name, name)
		}
	}
}

// opened checks an OpenReport after a crash.
func (a *actor) opened() {
	r := a.st.Admin().OpenReport()
	if r.Damage != nil {
		a.h.bad("%s: damage after a crash: %v", a.name, r.Damage)
	}
	if r.Rebuilt != nil && !(errors.Is(r.Rebuilt.Why, fs.ErrNotExist) && len(a.h.edits) > 0) { // files created by hand before the index
		a.h.bad("%s: the index was rebuilt after a crash: %v", a.name, r.Rebuilt.Why)
	}
	for _, p := range r.Problems {
		a.h.bad("%s: problem at open: %v", a.name, p)
	}
}

// recovery opens the store that a crash left, checks everything, and continues to use it. deep includes
// a flush, and a clean close and open as well.
func recovery(h *history, fsys vfs.FS, o *varve.Options, deep bool) (torn bool) {
	a := &actor{h: h, name: "recovery", now: o.Clock}
	st, err := varve.Open(ctx, h.dir, o)
	if err != nil {
		h.bad("the store does not open: %v", err)
		return false
	}
	a.st = st
	a.opened()
	torn = st.Admin().OpenReport().TornTail != nil
	a.calm()
	if deep {
		a.vectors()
	}
	a.put("after", 50, "", 0)
	a.put("a", 60, "s2", 0)
	if a.flush() == nil {
		a.settled(fsys, a.calm())
	}
	if deep {
		a.put("after", 70, "s1", 0)
	}
	a.close()
	if !deep {
		return torn
	}
	a.name = "after recovery"
	if a.st, err = varve.Open(ctx, h.dir, o); err != nil {
		h.bad("after a clean close the store does not open: %v", err)
		return torn
	}
	a.opened()
	if !a.st.Admin().OpenReport().Clean {
		h.bad("a clean close was not clean: %+v", a.st.Admin().OpenReport())
	}
	a.calm()
	a.vectors()
	a.close()
	return torn
}

func joinWrong(list []string) string {
	if len(list) > 12 {
		list = append(slices.Clone(list[:12]), fmt.Sprintf("… and %d more", len(list)-12))
	}
	return "\t" + strings.Join(list, "\n\t")
}
