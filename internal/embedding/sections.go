package embedding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/memstore"
)

// Sections gives access to the sections of notes whose texts are embedded, and to the view that stores their vectors
// (package internal/view/meanings).
type Sections interface {
	// Lacking returns texts that have no vector, but no more than limit texts, and no text for which skip returns true.
	// If the files of the view do not exist yet, Lacking returns no texts until Add was called.
	Lacking(ctx context.Context, limit int, skip func(meanings.Hash) bool) (meanings.Lacks, error)
	// Add stores vectors of a model, under the name that the store has for the model. It skips the vectors of texts
	// that no section has any more, and returns the number of stored vectors.
	Add(ctx context.Context, model string, list []meanings.Vector) (int, error)
}

// sectionsPause is the time that RunSections waits when it has found nothing to do. A new note can be found by meaning
// only after this time. The value differs from the waits after a failure, which are embedFirstWait doubled repeatedly,
// so that tests can distinguish them.
const sectionsPause = 3 * time.Second

// mostPassed is the maximum number of skipped texts that RunSections remembers.
const mostPassed = 10_000

// passedFor is the time for which RunSections skips a text whose note could not be read, whose vector was not stored,
// or that the embedder refuses. If the embedder's error says that it is a refusal, RunSections skips the text until the
// process ends.
const passedFor = 30 * time.Minute

// RunSections computes the vectors of the sections of notes, including notes that other processes have written. It
// returns when ctx ends.
func (em *Embedding) RunSections(ctx context.Context) {
	s := newSectioner(em, forQueue)
	for wait := embedFirstWait; ; {
		if len(s.passed) >= mostPassed {
			clear(s.passed)
		}
		_, more, err := s.embedBatch(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := time.Duration(0)
		switch {
		case err != nil:
			pause, wait = wait, min(2*wait, embedLastWait)
		case !more:
			pause, wait = sectionsPause, embedFirstWait
		default:
			wait = embedFirstWait
		}
		if pause > 0 && em.engine.Env().Sleep(ctx, pause) != nil {
			return
		}
	}
}

// PendingSections computes the vectors of the sections of notes that have no vector, and returns the number of sections
// that got one. It stops at the first failure of the embedder, unless the embedder accepts another text. In that case
// it continues with fewer texts per call, skips each text that the embedder refuses even alone, and at the end returns
// an error with the number of refused texts.
func (em *Embedding) PendingSections(ctx context.Context) (done int64, err error) {
	if em.config.Call == nil {
		return 0, errNone
	}
	s := newSectioner(em, forUser)
	for {
		n, more, err := s.embedBatch(ctx)
		done += int64(n)
		switch {
		case more:
		case err != nil:
			return done, err
		case s.refused > 0:
			return done, fmt.Errorf("the embedder refused %d texts of sections of notes; the first error is: %w",
				s.refused, s.why)
		default:
			return done, nil
		}
	}
}

// sectioner computes the vectors of sections, a few texts at a time.
type sectioner struct {
	em      *Embedding
	by      waiter                      // kind of caller: forQueue or forUser
	most    int                         // number of texts in the next call
	passed  map[meanings.Hash]time.Time // texts to skip, each with the time until which it is skipped; zero: always
	refused int                         // number of texts that the embedder has refused
	why     error                       // error of the embedder for the first refused text
}

func newSectioner(em *Embedding, caller waiter) *sectioner {
	return &sectioner{em: em, by: caller, most: em.config.Batch, passed: map[meanings.Hash]time.Time{}}
}

// skips reports whether the text with hash h is to be skipped now.
func (s *sectioner) skips(h meanings.Hash) bool {
	until, ok := s.passed[h]
	return ok && (until.IsZero() || s.em.engine.Env().Clock().Before(until))
}

// pass records that a text is to be skipped. Background work skips it for passedFor. A call that a user started skips
// it until all other texts are done.
func (s *sectioner) pass(h meanings.Hash) {
	if s.passed[h] = (time.Time{}); s.by == forQueue {
		s.passed[h] = s.em.engine.Env().Clock().Add(passedFor)
	}
}

// embedBatch computes the vectors of a batch of sections, and returns the number of sections that got a vector.
// more reports whether other sections may still have no vector. If more is true, the caller should call embedBatch
// again at once. more may also be true together with an error, if only some of the texts caused the error.
func (s *sectioner) embedBatch(ctx context.Context) (n int, more bool, err error) {
	em := s.em
	if em.sections == nil || em.config.Model == "" || !em.engine.HasHad(em.engine.Kinds().Notes) {
		return 0, false, nil
	}
	how := em.now(true) // a model that is not named yet is named for memories in sessions too
	if err := s.named(ctx, how); err != nil {
		return 0, false, err
	}
	l, err := em.sections.Lacking(ctx, s.most, s.skips)
	if err == nil && !l.Made {
		if _, err := em.sections.Add(ctx, how.name, nil); err != nil {
			return 0, false, err
		}
		l, err = em.sections.Lacking(ctx, s.most, s.skips)
	}
	if err != nil {
		return 0, false, err
	}
	for _, h := range l.Unread {
		s.pass(h)
	}
	list := l.Texts
	if len(list) == 0 {
		return 0, len(l.Unread) > 0, nil
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = how.template.Own(&memstore.Memory{Content: t.Text})
	}
	vecs, err := em.embed(ctx, texts, how, s.by)
	if err != nil {
		return s.failed(ctx, list, how, err)
	}
	s.most = min(2*s.most, em.config.Batch)
	if err := s.em.fit(ctx, vecs); err != nil {
		return 0, false, err
	}
	add := make([]meanings.Vector, len(list))
	for i, t := range list {
		add[i] = meanings.Vector{Hash: t.Hash, Vector: vecs[i]}
	}
	if n, err = em.sections.Add(ctx, how.name, add); err != nil {
		return 0, false, err
	}
	if n == 0 {
		for _, t := range list {
			s.pass(t.Hash) // the same texts would be embedded again and again
		}
	}
	return n, true, nil
}

// failed decides how to continue after the embedder has failed for the texts in list. mk is the maker of the
// vectors, and cause is the error of the embedder. A refused text must not delay the others: the next call has
// fewer texts, and a text that is refused alone is skipped. A text counts as refused only if the embedder accepts
// another text; otherwise the embedder's key is wrong, or the embedder is down. more reports whether the caller
// should continue at once. err is nil if the text was skipped.
func (s *sectioner) failed(ctx context.Context, list []meanings.Text, mk *maker,
	cause error) (n int, more bool, err error) {
	if cerr := ctx.Err(); cerr != nil {
		return 0, false, cerr
	}
	s.most = max(len(list)/2, 1)
	if len(list) > 1 && s.by != forUser {
		return 0, false, cause // the background waits
	}
	if !passes(ctx, cause) {
		return 0, false, cause
	}
	if _, err := s.em.embed(ctx, []string{ProbeText}, mk, s.by); err != nil {
		return 0, false, cause
	}
	if len(list) > 1 {
		return 0, true, cause
	}
	if s.pass(list[0].Hash); answered(cause) {
		s.passed[list[0].Hash] = time.Time{}
	}
	if s.refused++; s.why == nil {
		s.why = cause
	}
	return 0, true, nil
}

// errUnnamed is the error for a model that another process is naming.
var errUnnamed = errors.New("the model of the store's vectors is not recorded yet")

// named ensures that the model of the store's vectors has a recorded name, by which the vectors of sections are
// recognized.
func (s *sectioner) named(ctx context.Context, how *maker) error {
	em := s.em
	if em.vectors.Model().Name != "" {
		return nil
	}
	if _, err := em.embed(ctx, []string{ProbeText}, how, s.by); err != nil {
		return err
	}
	if em.vectors.Model().Name == "" {
		return errUnnamed
	}
	return nil
}
