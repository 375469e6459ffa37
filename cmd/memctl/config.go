package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/internal/template"
)

// setting describes a setting of config.json: its name, its description, and the function that returns its value.
type setting struct {
	name  string
	about string
	value func(c *varve.Config) any
}

// text returns the value in readable form: a number of seconds or days as a duration.
func (s *setting) text(c *varve.Config) string {
	v := s.value(c)
	if n, ok := v.(int); ok && s.name == days {
		return span.Seconds(int64(n) * 24 * 3600)
	}
	if seconds(s.name) {
		switch n := v.(type) {
		case int:
			return span.Seconds(int64(n))
		case int64:
			return span.Seconds(n)
		}
	}
	return fmt.Sprint(v)
}

// days is the name of the setting that is a number of days.
const days = "history_days"

// seconds reports whether a setting is a duration in seconds.
func seconds(name string) bool {
	return name == "backup_interval" || name == "activation_half_life" || name == "max_age"
}

func orElse[T any](p *T, d T) any {
	if p == nil {
		return d
	}
	return *p
}

// settings returns the settings that a user may change, each with a function that returns its value
// or default.
func settings() []setting {
	return []setting{
		{"index_backup_count", "number of older indexes kept in backups/",
			func(c *varve.Config) any { return orElse(c.IndexBackupCount, 3) }},
		{"auto_repair", "repair damage that is cheap to repair as soon as it is found",
			func(c *varve.Config) any { return orElse(c.AutoRepair, true) }},
		{"adopt_deletions", "deleting a file deletes its memory; false: the file is restored",
			func(c *varve.Config) any { return orElse(c.AdoptDeletions, true) }},
		{notesIgnore, "patterns of files in notes/ that are not adopted as notes, separated by spaces; \"\" for none",
			func(c *varve.Config) any { return strings.Join(c.Resolved().NotesIgnore, " ") }},
		{"block_purged", "a text that was purged is not stored again; memctl put --force-purged stores the text " +
			"nevertheless",
			func(c *varve.Config) any { return c.BlockPurged }},
		{"backup_interval", "time between two backups of the index (seconds)",
			func(c *varve.Config) any { return orElse(c.BackupInterval, 3600) }},
		{"flush_threshold", "number of changes that start a flush; otherwise a flush starts within a second",
			func(c *varve.Config) any { return orElse(c.FlushThreshold, 20) }},
		{"max_memory_bytes", "maximum size of one memory's JSON, in bytes",
			func(c *varve.Config) any { return cli.LimitsOf(*c).MemoryBytes }},
		{"max_id_bytes", "maximum length of an id, in bytes",
			func(c *varve.Config) any { return cli.LimitsOf(*c).IDBytes }},
		{"max_depth", "maximum number of levels of nesting in the JSON of one memory",
			func(c *varve.Config) any { return cli.LimitsOf(*c).Depth }},
		{"max_embedding_dims", "maximum number of dimensions of one embedding",
			func(c *varve.Config) any { return cli.LimitsOf(*c).EmbeddingDim }},
		{"max_assembly_members", "maximum number of memories in one assembly",
			func(c *varve.Config) any { return c.Resolved().MaxAssemblyMembers }},
		{"activation_half_life", "time in which an assembly's activation halves (seconds)",
			func(c *varve.Config) any { return c.Resolved().ActivationHalfLife }},
		{"max_memories", "maximum number of memories in the store; 0 means unlimited",
			func(c *varve.Config) any { return c.MaxMemories }},
		{"max_bytes", "maximum total size of all memories' JSON files, embeddings included, in bytes; 0 means " +
			"unlimited",
			func(c *varve.Config) any { return c.MaxBytes }},
		{"max_session_memories", "maximum number of memories in each session; 0 means unlimited",
			func(c *varve.Config) any { return c.MaxSessionMemories }},
		{"max_session_bytes", "maximum total size of the JSON files of each session, in bytes; 0 means unlimited",
			func(c *varve.Config) any { return c.MaxSessionBytes }},
		{"at_limit", "what a put does at a limit: refuse, evict_oldest, evict_lowest (the lowest quickrecal_score)",
			func(c *varve.Config) any { return cmp.Or(c.AtLimit, varve.AtLimitRefuse) }},
		{"max_age",
			"time from its last write after which a memory expires (seconds); it is deleted an hour or two later and can be " +
				"read until then; 0 means never", func(c *varve.Config) any { return c.MaxAge }},
		{"history_bytes",
			"maximum size of the history in wal/archive/, in bytes; the oldest part is removed first; 0: the history " +
				"is only what the log has",
			func(c *varve.Config) any { return *c.Resolved().HistoryBytes }},
		{"history_days",
			"age at which a part of the archived history is removed, when the index is written or memctl flush runs " +
				"(days); 0 means never",
			func(c *varve.Config) any { return c.HistoryDays }},
		{"unsent_bytes", "bytes of history that are kept beyond history_bytes if the remote copy of the store lacks " +
			"them",
			func(c *varve.Config) any { return *c.Resolved().UnsentBytes }},
		{"backlog_bytes",
			"maximum number of bytes by which the log may be ahead of the files; if the log is ahead by more than " +
				"half of this, writers are slowed down. A higher value allows longer bursts and makes recoveries " +
				"longer; it does not raise the throughput",
			func(c *varve.Config) any { return c.Resolved().BacklogBytes }},
		{"text_language",
			"language of the word stems in a search by words: a code such as en, de, fr, or none; memctl flush " +
				"applies a change",
			func(c *varve.Config) any { return cmp.Or(c.TextLanguage, "en") }},
		{textFields, "metadata members that each field of a query searches; memctl flush applies a change",
			func(c *varve.Config) any { return searchedFields(c) }},
		{embedTemplate,
			"text that is embedded for a memory: content; turns (content with the previous memory of its session, " +
				"speaker and caption); a text such as \"{previous} {speaker}: {content}\"; or keep (no change); " +
				"memctl reindex applies a change",
			func(c *varve.Config) any {
				return cmp.Or(vectorsOf(c).Template, keepTemplate)
			}},
		{queryTemplate,
			"text that is embedded for a query, for models that need a prefix: \"search_query: {query}\"; {query} " +
				"is the query unchanged. It applies to searches at once, and no vector has to be computed again",
			func(c *varve.Config) any {
				return cmp.Or(vectorsOf(c).QueryTemplate, template.Query)
			}},
	}
}

func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

func settingOf(command, name string) (setting, error) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.name == name })
	if i < 0 {
		names, what := nearNames(name), "did you mean"
		if len(names) == 0 {
			names, what = settingNames(), "the settings are"
		}
		question := ""
		if what == "did you mean" {
			question = "?"
		}
		err := cli.Usagef(command, "there is no setting %q; %s %s%s", name, what, strings.Join(names, ", "), question)
		return setting{}, cli.WithFix(err, "memctl config lists the settings")
	}
	return all[i], nil
}

// choices returns the possible values of a setting. It returns nil if the value is a number.
func choices(name string) []string {
	switch name {
	case "at_limit":
		return []string{varve.AtLimitRefuse, varve.AtLimitEvictOldest, varve.AtLimitEvictLowest}
	case "auto_repair", "adopt_deletions", "block_purged":
		return []string{"true", "false"}
	}
	return nil
}

// configArguments checks the arguments of memctl config. If the user wrote a setting without get or set, the error
// shows the correct syntax.
func configArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.Usagef(cmd.CommandPath(),
		"there is no command %q: memctl config get NAME prints a setting, memctl config set NAME VALUE changes it, memctl "+
			"config unset NAME restores its default", "config "+args[0])
}

func configCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show and change the store's settings",
		Long: `Show the settings in the store's config.json. They apply to every process that uses the store. A
setting whose unit is seconds or days is shown as a duration and may be set as a duration: 90m,
1h30m, 7d, 2w3d.`,
		Example: "  memctl config\n  memctl config get flush_threshold\n  memctl config set max_memory_bytes 1048576\n  " +
			"memctl config set max_session_memories 1000\n  memctl config set at_limit evict_oldest\n  memctl config set " +
			"max_age 30d\n  memctl config unset max_age",
		Args: configArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return listConfig(a, cmd) }),
	}
	c.AddCommand(
		&cobra.Command{
			Use: "list", Short: "Show all settings", Example: "  memctl config list --json", Args: cli.NoArguments,
			RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return listConfig(a, cmd) }),
		},
		&cobra.Command{
			Use: "get NAME", Short: "Print one setting",
			Long: "Print one setting. A setting in seconds or days is printed as a duration on a terminal, and as a\n" +
				"number elsewhere.",
			Example: "  memctl config get flush_threshold", Args: cli.Exactly(1, "the name of a setting"),
			RunE: a.Do(func(cmd *cobra.Command, args []string) error { return getConfig(a, cmd, args) }),
		},
		configSetCommand(a),
		configUnsetCommand(a),
	)
	return c
}

// mostBeside is the maximum length of a value, in bytes, that is printed on one line with its description.
const mostBeside = 20

func listConfig(a *cli.App, cmd *cobra.Command) error {
	return a.With(cmd.Context(), cli.Look, func(st *varve.Store) error {
		c := st.Admin().Config()
		for _, s := range settings() {
			if a.Document != nil {
				a.Document.Member(s.name, s.value(&c))
			} else {
				name, value := fmt.Sprintf("%-20s ", s.name), s.text(&c)
				if len(value) > mostBeside { // a longer value has lines of its own
					fmt.Fprintf(a.Out, "%s%s\n", name, a.Fit(len(name), value))
					name, value = fmt.Sprintf("%-20s ", ""), ""
				}
				row := fmt.Sprintf("%s%-10s ", name, value)
				fmt.Fprintf(a.Out, "%s%s\n", row, a.Fit(len(row), s.about))
			}
		}
		return nil
	})
}

func getConfig(a *cli.App, cmd *cobra.Command, args []string) error {
	s, err := settingOf(cmd.CommandPath(), args[0])
	if err != nil {
		return err
	}
	return a.With(cmd.Context(), cli.Look, func(st *varve.Store) error {
		c := st.Admin().Config()
		switch {
		case a.Document != nil:
			a.Document.Member(s.name, s.value(&c))
		case a.Out.Screen:
			fmt.Fprintln(a.Out, s.text(&c))
		default:
			fmt.Fprintln(a.Out, s.value(&c))
		}
		return nil
	})
}

func configSetCommand(a *cli.App) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "set NAME VALUE", Short: "Change one setting",
		Long: `Change one setting. If the change would delete memories (a limit below what the store has, with
at_limit evict_oldest or evict_lowest, or max_age), memctl prints how many and which, and asks for
confirmation on a terminal; elsewhere it requires --yes. It does the same if the change would remove
history that is kept (history_bytes, history_days).`,
		Example: "  memctl config set auto_repair false\n  memctl config set max_memories 1000 --yes",
		Args:    cli.Exactly(2, "a name and a value"),
		RunE:    a.Do(func(cmd *cobra.Command, args []string) error { return setConfig(a, cmd, args, yes) }),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

func setConfig(a *cli.App, cmd *cobra.Command, args []string, yes bool) error {
	s, err := settingOf(cmd.CommandPath(), args[0])
	if err != nil {
		return err
	}
	return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
		c := st.Admin().Config()
		was := c
		if err := assign(&c, s.name, args[1]); err == nil && !yes {
			if err := mayLose(cmd, a, st, &was, &c); err != nil {
				return err
			}
		}
		err := st.Admin().UpdateConfig(cmd.Context(), func(now *varve.Config) error {
			err := assign(now, s.name, args[1])
			c = *now
			return err
		})
		if err != nil {
			return err
		}
		a.Document.Member(s.name, s.value(&c))
		a.Say("%s is %s", s.name, s.text(&c))
		return nil
	})
}

// assign sets a setting in c to the value that the user wrote.
func assign(c *varve.Config, name, value string) error {
	switch name { // UpdateConfig checks the values
	case "at_limit":
		c.AtLimit = value
		return nil
	case "text_language":
		c.TextLanguage = value
		return nil
	case notesIgnore:
		c.NotesIgnore = append([]string{}, strings.Fields(value)...)
		return nil
	case textFields:
		return assignFields(c, value)
	case embedTemplate, queryTemplate:
		assignTemplate(c, name, value)
		return nil
	}
	switch {
	case seconds(name):
		value = inUnits(value, time.Second)
	case name == days:
		value = inUnits(value, 24*time.Hour)
	}
	member, err := json.Marshal(map[string]json.RawMessage{name: json.RawMessage(value)})
	if err == nil {
		err = json.Unmarshal(member, c)
	}
	if err != nil || strings.TrimSpace(value) == "null" {
		want := "a whole number"
		if seconds(name) {
			want += " of seconds, or a duration of whole seconds (90m, 1h30m, 7d, 2w3d)"
		}
		if name == days {
			want += " of days, or a duration of whole days (30d, 8w)"
		}
		if values := choices(name); values != nil {
			want = strings.Join(values, " or ")
		}
		return &varve.FieldError{Field: name, Value: fmt.Sprintf("%q", value), Err: errors.New("must be " + want)}
	}
	return nil
}
