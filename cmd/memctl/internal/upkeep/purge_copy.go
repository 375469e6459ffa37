package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/place"
	"github.com/varve-db/varve/remote"
)

// copyState is the copy of the store in the JSON document of purge.
type copyState struct {
	URL      string     `json:"url"`
	Complete bool       `json:"complete"`       // the copy has nothing of what was purged
	Due      *time.Time `json:"due,omitempty"`  // when the process that sends completes the purge in the copy
	From     *time.Time `json:"from,omitempty"` // moments that are lost
	To       *time.Time `json:"to,omitempty"`
}

// copyPurge is the part of a purge that concerns the copy of the store elsewhere. It is nil if the store sends to no
// copy.
type copyPurge struct {
	a  *cli.App
	of varve.Offsite
	c  copyState
}

// copyOf returns the part of a purge that concerns the copy. It returns nil, and an error that matches ErrNotFound or
// ErrInvalid, if the store sends to no copy. Any other error means that it is unknown what the copy still has.
func copyOf(ctx context.Context, a *cli.App, st *varve.Store) (*copyPurge, error) {
	p := &copyPurge{a: a, of: st.Admin().Offsite()}
	now, err := p.of.Purged(ctx)
	if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrInvalid) {
		return nil, err
	}
	p.c.URL = now.URL
	return p, err
}

// copyWait is the maximum time for which a purge waits for an answer of the remote that has the copy. Then the purge
// continues, and asks the user for a confirmation.
const copyWait = 20 * time.Second

// aboutCopy prints which moments of the copy can no longer be cloned after the purge of these memories and assemblies.
// If both lists are empty, the purge is of scopes of working memory. aboutCopy returns the part of the purge that
// concerns the copy, or nil if the store sends to no copy.
func aboutCopy(ctx context.Context, a *cli.App, st *varve.Store, memories, assemblies []string) *copyPurge {
	p, err := copyOf(ctx, a, st)
	if p == nil {
		return nil
	}
	var loss varve.CopyLoss
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, copyWait)
		defer cancel()
		err = p.opened(ctx, func(r remote.Remote) error {
			loss, err = p.of.PurgeLoses(ctx, r, memories, assemblies)
			return err
		})
	}
	switch {
	case err != nil:
		a.Note("after the purge, some moments of the copy elsewhere may no longer be available to clone; which "+
			"moments is unknown: %v", err)
	case loss.From.IsZero():
		a.Note("after the purge, every moment of the copy at %s can still be cloned, without the purged data", p.c.URL)
	default:
		p.c.From, p.c.To = &loss.From, &loss.To
		a.Note("after the purge, the moments from %s to %s of the copy at %s can no longer be cloned",
			loss.From.Format(time.RFC3339), loss.To.Format(time.RFC3339), p.c.URL)
	}
	return p
}

func (p *copyPurge) opened(ctx context.Context, f func(r remote.Remote) error) error {
	r, err := place.Open(ctx, p.c.URL)
	if err != nil {
		return err
	}
	return errors.Join(f(r), r.Close())
}

// end removes the purged data from the copy if now is true. Then it prints whether the copy still contains purged
// data, and when the process that sends to the copy will remove the data. err is the error of the purge; end returns
// it, joined with its own error. If p is nil, end only returns err.
func (p *copyPurge) end(ctx context.Context, now bool, err error) error {
	if p == nil {
		return err
	}
	if now {
		err = errors.Join(err, p.opened(ctx, func(r remote.Remote) error { return p.of.PurgeNow(ctx, r) }))
	}
	state, serr := p.of.Purged(ctx)
	p.c.Complete = serr == nil && !state.Pending
	if !state.Due.IsZero() {
		p.c.Due = &state.Due
	}
	p.a.Document.Member("copy", p.c)
	switch {
	case p.c.Complete:
		p.a.Note("the copy at %s contains none of the purged data%s", p.c.URL, residueWarning(p.c.URL))
	case serr != nil:
		p.a.Note("could not find out whether the copy at %s still contains purged data: %v", p.c.URL, serr)
	case !now && p.c.Due != nil:
		p.a.Note("the copy at %s still contains purged data; the process that sends to the copy removes the data at "+
			"%s at the latest; memctl purge --now removes the data now", p.c.URL, p.c.Due.Format(time.RFC3339))
	default:
		p.a.Note("the copy at %s still contains purged data: memctl purge --now removes the data", p.c.URL)
	}
	return err
}

// residueWarning returns the end of a message about a copy: which data outside the copy, such as snapshots of its
// disk, may still contain what was removed from the copy.
func residueWarning(url string) string {
	switch {
	case strings.HasPrefix(url, "s3:"):
		return "; if the bucket keeps old versions of objects, remove those versions yourself"
	case strings.HasPrefix(url, "postgres"):
		return "; backups of the database may still contain the data"
	}
	return "; snapshots and backups of its disk may still contain the data"
}

// endVersion is like copyPurge.end, for the redaction of a version.
func endVersion(ctx context.Context, a *cli.App, st *varve.Store, now bool) error {
	p, _ := copyOf(ctx, a, st) // end prints the error
	return p.end(ctx, now, nil)
}

// purgeCopy removes from the copy the data that earlier purges removed from the store.
func purgeCopy(ctx context.Context, a *cli.App, st *varve.Store) error {
	p, err := copyOf(ctx, a, st)
	if errors.Is(err, varve.ErrNotFound) {
		return cli.WithFix(fmt.Errorf("a copy elsewhere: %w", varve.ErrNotFound),
			"memctl purge --now without ids purges only the copy elsewhere, which this store does not have; to see "+
				"this, run memctl remote status")
	}
	if err != nil {
		return err
	}
	return p.end(ctx, true, nil)
}
