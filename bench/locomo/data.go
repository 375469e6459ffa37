package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/varve-db/varve"
)

type conversation struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
}

type turn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"` // caption of a picture that was shown
}

type question struct {
	conversation, text string
	category           int
	evidence           map[string]bool // ids of the memories that are the evidence
}

var (
	sessionName = regexp.MustCompile(`^session_(\d+)$`)
	turnID      = regexp.MustCompile(`D(\d+):(\d+)`)
)

// read returns the turns as memories, and the questions.
func read(path string, speaker bool) (memories []varve.Memory, questions []question, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var all []conversation
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range all {
		known := map[string]bool{}
		for name, raw := range c.Conversation {
			n := sessionName.FindStringSubmatch(name)
			if n == nil {
				continue
			}
			var turns []turn
			if err := json.Unmarshal(raw, &turns); err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", c.ID, name, err)
			}
			var when string
			_ = json.Unmarshal(c.Conversation[name+"_date_time"], &when)
			at, err := time.Parse("3:04 pm on 2 January, 2006", when)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", c.ID, name, err)
			}
			for i, t := range turns {
				m := varve.Memory{ID: c.ID + "/" + t.ID, Content: t.Text, Timestamp: at.Add(time.Duration(i) * time.Second),
					Metadata: map[string]any{"session_id": c.ID + "/" + n[1], "speaker": t.Speaker, "time": when}}
				if t.Caption != "" {
					m.Metadata["caption"] = t.Caption
				}
				if speaker {
					m.Content = t.Speaker + ": " + t.Text
				}
				known[m.ID] = true
				memories = append(memories, m)
			}
		}
		for _, q := range c.Questions {
			x := question{c.ID, q.Question, q.Category, map[string]bool{}}
			for _, e := range turnID.FindAllStringSubmatch(strings.Join(q.Evidence, " "), -1) {
				id := c.ID + "/D" + e[1] + ":" + strings.TrimLeft(e[2], "0")
				if known[id] {
					x.evidence[id] = true
				}
			}
			questions = append(questions, x)
		}
	}
	return memories, questions, nil
}
