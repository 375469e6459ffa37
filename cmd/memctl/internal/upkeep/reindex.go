package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func Reindex(a *cli.App) *cobra.Command {
	var model string
	var anew, missing, cancel bool
	c := &cobra.Command{
		Use:   "reindex",
		Short: "Compute all embeddings again",
		Long: `Compute the embedding of every memory that has a text again, with the service that
VARVE_EMBED_URL and VARVE_EMBED_MODEL name: after a change of the model, also to one
of another dimension. With --missing only memories that have none get one.

First all embeddings are computed, beside the store. Until all of them are there the old
ones serve; what other processes put meanwhile with the new model is stored without one
and gets it with the rest. Then the store changes its model in one step, for all
processes: every search finds by the new embeddings, never by a mixture. Then the memories
are rewritten; their updated_at stays. Processes that still ask the old model leave their
memories without an embedding from the step on: end them, or give them the new model.

When it is interrupted, killed too, the next run with the same model goes on where this
one was; --cancel calls it off instead, as long as the store has not changed its model.
A text that the service refuses, while it takes others, leaves its memory without an
embedding; it is named here and by memctl verify, and asked about again by the next run,
or when the text changes.
Memories without a text keep their embedding; if it has another dimension they
are not found by it any more.`,
		Example: "  memctl reindex\n  memctl reindex --model nomic-embed-text\n  memctl reindex --missing",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if cancel {
				return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error { return cancelReindex(cmd.Context(), a, st) })
			}
			get := a.Getenv
			if model != "" {
				a.Getenv = func(name string) string {
					if name == "VARVE_EMBED_MODEL" {
						return model
					}
					return get(name)
				}
			}
			e, err := a.Embedder()
			if err == nil && e == nil {
				err = cli.Usagef(cmd.CommandPath(), "there is no service that makes embeddings: set VARVE_EMBED_URL and VARVE_EMBED_MODEL")
			}
			if err != nil {
				return err
			}
			return a.WithEmbedder(cmd.Context(), func(st *varve.Store) error {
				if missing {
					return embedMissing(cmd.Context(), a, st)
				}
				return reindexStore(cmd.Context(), a, st, varve.ReembedOptions{Anew: anew})
			})
		}),
	}
	c.Flags().StringVar(&model, "model", "", "the `model`, instead of VARVE_EMBED_MODEL")
	c.Flags().BoolVar(&anew, "anew", false, "forget what an interrupted run has computed")
	c.Flags().BoolVar(&missing, "missing", false, "only for memories that have none")
	c.Flags().BoolVar(&cancel, "cancel", false, "call an interrupted run off, and remove what it has computed")
	c.MarkFlagsMutuallyExclusive("anew", "missing", "cancel")
	c.MarkFlagsMutuallyExclusive("model", "cancel")
	return c
}

// reindexed is what reindex did.
type reindexed struct {
	Total    int64 `json:"total"`
	Resumed  int64 `json:"resumed"`
	Computed int64 `json:"computed"`
	Written  int64 `json:"written"`
	Changed  int64 `json:"changed"`

	Refused  int64      `json:"refused"`
	Refusals []refusals `json:"refusals"` // the first of them
}

// refusals is a memory whose text the embedder does not take.
type refusals struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

func reindexStore(ctx context.Context, a *cli.App, st *varve.Store, o varve.ReembedOptions) error {
	done := func() {}
	if a.Animated() {
		bar := a.NewBar(-1, "embedding", progressbar.OptionShowCount())
		o.Progress = func(r varve.ReembedReport) {
			bar.ChangeMax64(2 * r.Total) // each is computed, then written
			_ = bar.Set64(min(r.Resumed+r.Computed+r.Written, 2*r.Total))
		}
		done = func() { _ = bar.Finish() }
	}
	r, err := st.Vectors().Reembed(ctx, o)
	done()
	if r == nil {
		return err
	}
	if a.Document != nil {
		d := reindexed{r.Total, r.Resumed, r.Computed, r.Written, r.Changed, r.Refused, []refusals{}}
		for _, f := range r.Refusals {
			d.Refusals = append(d.Refusals, refusals{f.ID, f.Err.Error()})
		}
		a.Document.All(d)
	} else if err == nil {
		a.Say("%d embeddings made%s, %d memories have another one", r.Computed, resumed(r.Resumed), r.Written)
	}
	if err == nil && r.Refused > 0 {
		for _, f := range r.Refusals[:min(len(r.Refusals), 10)] {
			a.Note("the embedder does not take the text of memory %s: %v", cli.PrintableID(f.ID), f.Err)
		}
		a.Note("%d memories are left without an embedding: shorten their texts, which has them asked about again; memctl verify names them", r.Refused)
	}
	if err != nil && r.Resumed+r.Computed > 0 {
		again := "memctl reindex goes on from here"
		if f := cli.Classify(err); f.Fix != "" && !errors.Is(err, context.Canceled) {
			again = f.Fix + "; then " + again
		}
		err = cli.WithFix(fmt.Errorf("%d embeddings are made and %d memories have theirs: %w", r.Resumed+r.Computed, r.Written, err), again)
	}
	return err
}

func resumed(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d by an earlier run", n)
}

func embedMissing(ctx context.Context, a *cli.App, st *varve.Store) error {
	n, err := st.Vectors().EmbedPending(ctx)
	if a.Document != nil {
		a.Document.Member("embedded", n)
	} else if err == nil || n > 0 {
		a.Say("%d memories got an embedding", n)
	}
	return err
}

func cancelReindex(ctx context.Context, a *cli.App, st *varve.Store) error {
	model, err := st.Vectors().CancelReembed(ctx)
	if err != nil {
		return err
	}
	switch {
	case a.Document != nil:
		a.Document.Member("canceled", model)
	case model == "":
		a.Say("no other model was to come; what was computed is removed")
	default:
		a.Say("the re-embedding by %s is called off", model)
	}
	return nil
}
