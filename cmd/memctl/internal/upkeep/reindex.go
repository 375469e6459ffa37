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
	var restart, missing, cancel bool
	c := &cobra.Command{
		Use:   "reindex",
		Short: "Compute all embeddings again",
		Long: `Compute the embedding of every memory that has a text again, with the service that
VARVE_EMBED_URL and VARVE_EMBED_MODEL name: after a change of the model, which may have another
dimension. With --missing, only memories without an embedding get one.

First all embeddings are computed, beside the store. Until then searches use the old ones; a
memory that another process puts meanwhile with the new model is stored without an embedding and
gets one with the rest. Then the store changes its model in one step, for all processes: a search
uses the new embeddings, never a mixture. Then the memories are rewritten; their updated_at does
not change. From that step on, memories of processes that still use the old model are stored
without an embedding: end these processes, or configure the new model for them.

After an interruption or a kill, the next run with the same model continues; --cancel discards
the run instead, as long as the store has not changed its model. A text that the service refuses,
while it accepts others, leaves its memory without an embedding; reindex and memctl verify name
the memory, and the next run, or a change of the text, tries again. Memories without a text keep
their embedding; if it has another dimension, searches no longer find them by it.`,
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
				err = cli.Usagef(cmd.CommandPath(), "no embedding service is configured: set VARVE_EMBED_URL and VARVE_EMBED_MODEL")
			}
			if err != nil {
				return err
			}
			return a.WithEmbedder(cmd.Context(), func(st *varve.Store) error {
				if missing {
					return embedMissing(cmd.Context(), a, st)
				}
				return reindexStore(cmd.Context(), a, st, varve.ReembedOptions{Restart: restart})
			})
		}),
	}
	c.Flags().StringVar(&model, "model", "", "use this `model` instead of VARVE_EMBED_MODEL")
	c.Flags().BoolVar(&restart, "restart", false, "discard the vectors that an interrupted run has computed")
	c.Flags().BoolVar(&missing, "missing", false, "only for memories without an embedding")
	c.Flags().BoolVar(&cancel, "cancel", false, "cancel an interrupted run and remove the vectors that it has computed")
	c.MarkFlagsMutuallyExclusive("restart", "missing", "cancel")
	c.MarkFlagsMutuallyExclusive("model", "cancel")
	return c
}

// reindexed is the JSON document of reindex.
type reindexed struct {
	Total    int64 `json:"total"`
	Resumed  int64 `json:"resumed"`
	Computed int64 `json:"computed"`
	Written  int64 `json:"written"`
	Changed  int64 `json:"changed"`

	Refused  int64      `json:"refused"`
	Refusals []refusals `json:"refusals"` // the first refusals
}

// refusals is a memory whose text the embedder refuses, in the JSON document.
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
		a.Say("computed %s%s, rewrote %s", cli.Count(int(r.Computed), "embedding", "embeddings"), resumed(r.Resumed),
			cli.Count(int(r.Written), "memory", "memories"))
	}
	if err == nil && r.Refused > 0 {
		for _, f := range r.Refusals[:min(len(r.Refusals), 10)] {
			a.Note("the embedding service refused the text of memory %s: %v", cli.PrintableID(f.ID), f.Err)
		}
		a.Note("%s left without an embedding: shorten the texts, and memctl reindex tries again; memctl verify lists "+
			"these memories",
			cli.Count(int(r.Refused), "memory is", "memories are"))
	}
	if err != nil && r.Resumed+r.Computed > 0 {
		again := "memctl reindex continues"
		if f := cli.Classify(err); f.Fix != "" && !errors.Is(err, context.Canceled) {
			again = f.Fix + "; then " + again
		}
		err = cli.WithFix(fmt.Errorf("%s computed, %s rewritten: %w",
			cli.Count(int(r.Resumed+r.Computed), "embedding", "embeddings"), cli.Count(int(r.Written), "memory", "memories"),
			err), again)
	}
	return err
}

func resumed(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d in an earlier run)", n)
}

func embedMissing(ctx context.Context, a *cli.App, st *varve.Store) error {
	n, err := st.Vectors().EmbedPending(ctx)
	if a.Document != nil {
		a.Document.Member("embedded", n)
	} else if err == nil || n > 0 {
		a.Say("%s got an embedding", cli.Count(int(n), "memory", "memories"))
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
		a.Say("no reindex was running; removed the vectors that an earlier reindex had computed")
	default:
		a.Say("canceled the reindex with the model %s", model)
	}
	return nil
}
