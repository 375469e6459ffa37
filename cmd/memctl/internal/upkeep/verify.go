package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/repair"
)

func Verify(a *cli.App) *cobra.Command {
	var sample string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the store for damage",
		Long: `Read everything, compare the index, the files and the log, and report each finding: the place,
what is at stake, what would repair it, and the next command. Nothing is changed, and other
processes may use the store meanwhile. A store that cannot be opened is checked as well.`,
		Example: "  memctl verify\n  memctl verify --sample 1/7       one part of seven, for every day of the week\n  " +
			"memctl verify --json | jq .summary",
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			o := varve.VerifyOptions{Summary: new(varve.VerifySummary)}
			if cmd.Flags().Changed("sample") {
				var err error
				if o.Part, o.Parts, err = parseSample(sample); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--sample %w", err)
				}
			}
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			return verifyStore(cmd.Context(), a, dir, o)
		}),
	}
	c.Flags().StringVar(&sample, "sample", "", "read only part `N/T` of the files; all T parts together are all files")
	return c
}

func parseSample(s string) (part, parts int, err error) {
	n, t, ok := strings.Cut(s, "/")
	part, err1 := strconv.Atoi(n)
	parts, err2 := strconv.Atoi(t)
	if !ok || err1 != nil || err2 != nil || part < 1 || part > parts {
		return 0, 0, fmt.Errorf("%q: must be N/T with 1 ≤ N ≤ T", s)
	}
	return part, parts, nil
}

// finding is a finding in the JSON output of verify.
type finding struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Path     string `json:"path"`
	Offset   *int64 `json:"offset,omitempty"`
	ID       string `json:"id,omitempty"`
	LSN      uint64 `json:"lsn,omitempty"`
	Message  string `json:"message,omitempty"`
	Stake    string `json:"stake,omitempty"`
	Heals    string `json:"heals,omitempty"`
	Next     string `json:"next,omitempty"`
}

// summary has the counts in the JSON output of verify.
type summary struct {
	Memories    int64            `json:"memories"`
	Assemblies  int64            `json:"assemblies"`
	Vectors     int64            `json:"vectors"`
	Files       int64            `json:"files"`
	Bytes       int64            `json:"bytes"`
	Segments    int64            `json:"segments"`
	Archived    int64            `json:"archived"`
	Entries     int64            `json:"entries"`
	Quarantined int64            `json:"quarantined"`
	Findings    map[string]int64 `json:"findings"`
	Worst       string           `json:"worst"` // the gravest severity of a finding, "" if nothing was found
}

func verifyStore(ctx context.Context, a *cli.App, dir string, o varve.VerifyOptions) error {
	progress, done := a.Bar("verifying")
	o.Progress = progress
	a.Document.Begin("findings")
	var v verdict
	infos := map[varve.FindingKind]int64{}
	for f, err := range varve.VerifyFolder(ctx, dir, storeOptions(a), o) {
		if err != nil {
			done()
			return err
		}
		v.add(&f)
		if f.Severity == repair.Info { // in a copied folder every file has another time
			if infos[f.Kind]++; infos[f.Kind] > fewInfos && a.Document == nil {
				continue
			}
		}
		tellFinding(a, &f)
	}
	done()
	tellMore(a, infos)
	s := summaryOf(o.Summary, v.count())
	if a.Document != nil {
		a.Document.Member("summary", s)
	} else {
		a.Say("read %s, %s, %s, %s, %s of the log, %s: %s", cli.Count(int(s.Memories), "memory", "memories"),
			cli.Count(int(s.Assemblies), "assembly", "assemblies"),
			cli.Count(int(s.Vectors), "vector", "vectors"), cli.Count(int(s.Files), "file", "files"),
			cli.Count(int(s.Entries), "entry", "entries"), cli.Size(s.Bytes), &v)
	}
	v.note(a, "memctl repair shows how to repair what was found")
	return nil
}

// fewInfos is the maximum number of harmless findings of a kind that are printed as text.
const fewInfos = 3

// tellMore prints how many further harmless findings were not listed, by kind.
func tellMore(a *cli.App, infos map[varve.FindingKind]int64) {
	for _, kind := range slices.Sorted(maps.Keys(infos)) {
		if n := infos[kind] - fewInfos; n > 0 {
			a.Say("%s: %d more; --json lists all", kind, n)
		}
	}
}

func summaryOf(s *varve.VerifySummary, n int) summary {
	r := summary{s.Memories, s.Assemblies, s.Vectors, s.Files, s.Bytes, s.Segments, s.Archived, s.Entries, s.Quarantined,
		map[string]int64{}, ""}
	for kind, n := range s.Findings {
		r.Findings[string(kind)] = n
	}
	if n > 0 {
		r.Worst = s.Worst.String()
	}
	return r
}

// tellFinding prints one finding.
func tellFinding(a *cli.App, f *varve.Finding) {
	message := ""
	if f.Err != nil {
		message = f.Err.Error()
	}
	if a.Document != nil {
		d := finding{string(f.Kind), f.Severity.String(), f.Path, nil, f.ID, f.LSN, message, f.Stake, f.Heals, f.Next}
		if f.Offset >= 0 {
			d.Offset = &f.Offset
		}
		a.Document.Item(d)
		return
	}
	if a.Quiet && f.Severity == repair.Info {
		return
	}
	fmt.Fprintln(a.Out, cli.Printable(f.String()))
	for _, part := range [][2]string{{"at stake", f.Stake}, {"healed by", f.Heals}, {"next", f.Next}} {
		if part[1] != "" {
			fmt.Fprintf(a.Out, "  %s: %s\n", part[0], cli.Printable(part[1]))
		}
	}
}
