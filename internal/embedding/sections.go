package embedding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/memstore"
)

// Sections are the sections of notes whose texts are embedded; package views keeps their vectors.
type Sections interface {
	// Lacking returns texts without a vector, at most as many as asked for, and without those for which skip returns
	// true. If the files are not made yet, nothing is known of the texts until Add was called.
	Lacking(ctx context.Context, most int, skip func(meanings.Hash) bool) (meanings.Lacks, error)
	// Add stores vectors by a model, under the name that the store has for it, and returns how many it stored: not those
	// of texts that no section has any more.
	Add(ctx context.Context, model string, list []meanings.Vector) (int, error)
}

// sectionsPause is how long RunSections waits after it has found nothing to do: a note that was written is found by
// meaning after that. It is none of the waits after a failure, which double from embedFirstWait, so that tests can tell
// them apart.
const sectionsPause = 3 * time.Second

// mostPassed is how many texts that are passed over RunSections remembers.
const mostPassed = 10_000

// passedFor is how long RunSections passes over a text whose note could not be read, whose vector was not stored, or
// that the embedder refuses. If the error itself says that it is a refusal, the text is passed over until the process
// ends.
const passedFor = 30 * time.Minute

// RunSections gives vectors to the sections of notes, whichever process has written them. It returns when ctx ends.
func (em *Embedding) RunSections(ctx context.Context) {
	s := newSectioner(em, forQueue)
	for wait := embedFirstWait; ; {
		if len(s.passed) >= mostPassed {
			clear(s.passed)
		}
		_, more, err := s.some(ctx)
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

// PendingSections gives vectors to the sections of notes that have none, and returns how many got one. It stops at the
// first failure of the embedder, unless that accepts another text: then it goes on with fewer texts in a call, passes
// over those that are refused alone, and returns at the end an error with their number.
func (em *Embedding) PendingSections(ctx context.Context) (done int64, err error) {
	if em.config.Call == nil {
		return 0, errNone
	}
	s := newSectioner(em, forUser)
	for {
		n, more, err := s.some(ctx)
		done += int64(n)
		switch {
		case more:
		case err != nil:
			return done, err
		case s.refused > 0:
			return done, fmt.Errorf("the embedder refused %d texts of sections of notes, the first with: %w", s.refused, s.why)
		default:
			return done, nil
		}
	}
}

// sectioner embeds texts of sections, some at a time.
type sectioner struct {
	em      *Embedding
	by      waiter                      // forQueue or forUser
	most    int                         // texts in the next call
	passed  map[meanings.Hash]time.Time // texts that are passed over, and until when; always if that is zero
	refused int                         // how many texts the embedder has refused
	why     error                       // its error for the first of them
}

func newSectioner(em *Embedding, by waiter) *sectioner {
	return &sectioner{em: em, by: by, most: em.config.Batch, passed: map[meanings.Hash]time.Time{}}
}

// skips reports whether a text is passed over.
func (s *sectioner) skips(h meanings.Hash) bool {
	until, ok := s.passed[h]
	return ok && (until.IsZero() || s.em.engine.Env().Clock().Before(until))
}

// pass passes over a text: in the background for a while, for a user until all others are done.
func (s *sectioner) pass(h meanings.Hash) {
	if s.passed[h] = (time.Time{}); s.by == forQueue {
		s.passed[h] = s.em.engine.Env().Clock().Add(passedFor)
	}
}

// some embeds texts of sections without a vector, and returns how many got one. more reports that there may be others,
// and that calling some again at once brings it on: also after an error that only some of the texts have caused.
func (s *sectioner) some(ctx context.Context) (n int, more bool, err error) {
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

// failed decides what to do after the embedder has failed for some texts. A refused text must not hold up the others:
// the next call has fewer texts, and one that is refused alone is passed over. Only an embedder that accepts another
// text refuses one; otherwise its key is wrong, or it is down.
func (s *sectioner) failed(ctx context.Context, list []meanings.Text, how *maker,
	why error) (n int, more bool, err error) {
	if cerr := ctx.Err(); cerr != nil {
		return 0, false, cerr
	}
	s.most = max(len(list)/2, 1)
	if len(list) > 1 && s.by != forUser {
		return 0, false, why // the background waits
	}
	if !passes(ctx, why) {
		return 0, false, why
	}
	if _, err := s.em.embed(ctx, []string{ProbeText}, how, s.by); err != nil {
		return 0, false, why
	}
	if len(list) > 1 {
		return 0, true, why
	}
	if s.pass(list[0].Hash); answered(why) {
		s.passed[list[0].Hash] = time.Time{}
	}
	if s.refused++; s.why == nil {
		s.why = why
	}
	return 0, true, nil
}

// errUnnamed is the error for a model that another process is naming.
var errUnnamed = errors.New("the model of the store's vectors is not recorded yet")

// named makes sure that the store's vectors have a named model, by which the vectors of sections are recognized.
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
