package heal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/repairs/past"
	"github.com/varve-db/varve/repair"
)

// history is what log and archive had of the documents that an undo is about when it
// first asked: read once for all of them.
type history struct {
	of  Store
	all map[*kind.Kind]map[string][]past.Version
}

// pasts are the versions of the documents of a kind that the repair was about.
func (u *undo) pasts(s Store, k *kind.Kind) (map[string][]past.Version, error) {
	if u.read.of != s {
		u.read = history{s, map[*kind.Kind]map[string][]past.Version{}}
	}
	if all, ok := u.read.all[k]; ok {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, c := range u.list {
		if c.ID != "" && kind.At(c.Path) == k {
			wanted[c.ID] = true
		}
	}
	all, err := past.New(u.ctx, s.Source()).All(k, func(id string) bool { return wanted[id] })
	if err == nil {
		u.read.all[k] = all
	}
	return all, err
}

// unsaid: a file was to be adopted, and the manifest does not say as which version.
func unsaid(c journal.Change) bool {
	return c.Do == repair.Adopt && c.ID != "" && c.Now == 0 && fileOf(&c) != nil && kind.At(c.Path) != nil
}

// fileOf is what was to be adopted.
func fileOf(c *journal.Change) *journal.Stands {
	if c.Before != nil {
		return c.Before
	}
	return c.After
}

// committed finds in the log what a repair adopted that was cut before it had written down
// the versions: each is the one that followed the version before, and has the file's bytes.
func (u *undo) committed(s Store) error {
	if u.end != nil {
		return nil
	}
	for i := range u.list {
		c := &u.list[i]
		if !unsaid(*c) {
			continue
		}
		all, err := u.pasts(s, kind.At(c.Path))
		if err != nil {
			return err
		}
		if p := follower(all[c.ID], c.Was); p != nil && fmt.Sprintf("sha256:%x", p.Hash) == fileOf(c).Hash {
			c.Now = p.Version
			u.untold = append(u.untold, journal.Change{N: c.N, Now: p.Version})
		}
	}
	return nil
}

// follower is the version that came next after one, 0: that began what there is after the
// last deletion.
func follower(list []past.Version, was uint64) *past.Version {
	at := 0
	if was == 0 {
		for i, p := range list {
			if p.Deleted {
				at = i + 1
			}
		}
	} else {
		at, _ = slices.BinarySearchFunc(list, was+1, func(p past.Version, at uint64) int { return cmp.Compare(p.Version, at) })
	}
	if at >= len(list) || list[at].Deleted {
		return nil
	}
	return &list[at]
}
