package embedding

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/memstore"
)

// Sections are the sections of notes whose texts are embedded; package views keeps their vectors.
type Sections interface {
	// Lacking returns texts without a vector, at most as many as asked for, and without those for which skip returns
	// true. made is false if nothing is known of the texts until Add was called.
	Lacking(ctx context.Context, most int, skip func(meanings.Hash) bool) (list []meanings.Text, made bool, err error)
	// Add stores vectors by a model, under the name that the store has for it, and returns how many it stored: not those
	// of texts that no section has any more.
	Add(ctx context.Context, model string, list []meanings.Vector) (int, error)
}

// sectionsPause is how long RunSections waits after it has found nothing to do: a note that was written is found by
// meaning after that.
const sectionsPause = 2 * time.Second

// mostPassed is how many texts that the embedder refuses are remembered.
const mostPassed = 10_000

// RunSections gives vectors to the sections of notes, whichever process has written them. It returns when ctx ends.
func (em *Embedding) RunSections(ctx context.Context) {
	s := sectioner{em: em, most: em.config.Batch, passed: map[meanings.Hash]bool{}}
	for wait := embedFirstWait; ; {
		n, err := s.some(ctx, forQueue)
		if ctx.Err() != nil {
			return
		}
		pause := time.Duration(0)
		switch {
		case err != nil:
			pause, wait = wait, min(2*wait, embedLastWait)
		case n == 0:
			pause, wait = sectionsPause, embedFirstWait
		default:
			wait = embedFirstWait
		}
		if pause > 0 && em.engine.Env().Sleep(ctx, pause) != nil {
			return
		}
	}
}

// PendingSections gives vectors to the sections of notes that have none, and returns how many got one. It stops at the
// first failure of the embedder.
func (em *Embedding) PendingSections(ctx context.Context) (done int64, err error) {
	if em.config.Call == nil {
		return 0, errNone
	}
	s := sectioner{em: em, most: em.config.Batch, passed: map[meanings.Hash]bool{}}
	for {
		n, err := s.some(ctx, forUser)
		if done += int64(n); err != nil || n == 0 {
			return done, err
		}
	}
}

// sectioner embeds texts of sections, some at a time.
type sectioner struct {
	em     *Embedding
	most   int                    // texts in the next call
	passed map[meanings.Hash]bool // texts that the embedder refuses
}

// some embeds texts of sections without a vector, and returns how many got one.
func (s *sectioner) some(ctx context.Context, by waiter) (int, error) {
	em := s.em
	if em.sections == nil || em.config.Model == "" || !em.engine.HasHad(em.engine.Kinds().Notes) {
		return 0, nil
	}
	how := em.now(true) // a model that is not named yet is named for memories in sessions too
	if err := s.named(ctx, how, by); err != nil {
		return 0, err
	}
	list, made, err := em.sections.Lacking(ctx, s.most, func(h meanings.Hash) bool { return s.passed[h] })
	if err != nil {
		return 0, err
	}
	if !made {
		if _, err := em.sections.Add(ctx, how.name, nil); err != nil {
			return 0, err
		}
		list, _, err = em.sections.Lacking(ctx, s.most, func(h meanings.Hash) bool { return s.passed[h] })
	}
	if err != nil || len(list) == 0 {
		return 0, err
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = how.template.Own(&memstore.Memory{Content: t.Text})
	}
	vecs, err := em.embed(ctx, texts, how, by)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return 0, cerr
		}
		if s.most = max(len(list)/2, 1); len(list) == 1 && answered(err) { // a refused text must not hold up the others
			if len(s.passed) >= mostPassed {
				clear(s.passed)
			}
			s.passed[list[0].Hash] = true
			return 0, nil
		}
		return 0, err
	}
	s.most = min(2*s.most, em.config.Batch)
	add := make([]meanings.Vector, len(list))
	for i, t := range list {
		add[i] = meanings.Vector{Hash: t.Hash, Vector: vecs[i]}
	}
	return em.sections.Add(ctx, how.name, add)
}

// errUnnamed is the error for a model that another process is naming.
var errUnnamed = errors.New("the model of the store's vectors is not recorded yet")

// named makes sure that the store's vectors have a named model, by which the vectors of sections are recognized.
func (s *sectioner) named(ctx context.Context, how *maker, by waiter) error {
	em := s.em
	if em.vectors.Model().Name != "" {
		return nil
	}
	if _, err := em.embed(ctx, []string{ProbeText}, how, by); err != nil {
		return err
	}
	if em.vectors.Model().Name == "" {
		return errUnnamed
	}
	return nil
}
