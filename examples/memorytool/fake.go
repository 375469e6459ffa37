package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// fakeAPI is an http.Handler that takes the place of the model: it answers each request with the next element of
// turns.
type fakeAPI struct {
	mu       sync.Mutex
	turns    []turn
	requests []request
}

// turn is one answer of the model: calls of the tool, or if there are no calls, the final text.
type turn struct {
	calls []call
	text  string
}

// call is the input of a call of the memory tool.
type call map[string]any

func newFakeAPI(turns ...turn) *fakeAPI { return &fakeAPI{turns: turns} }

// remembering returns the turns of a model that views its memory, writes the prompt to a file, and views that file.
func remembering(prompt string) []turn {
	return []turn{
		{calls: []call{{"command": "view", "path": "/memories"}}},
		{calls: []call{{"command": "create", "path": "/memories/user.md", "file_text": "# The user\n\n- " + prompt + "\n"}}},
		{calls: []call{{"command": "view", "path": "/memories/user.md"}}},
		{text: "I have written it down in /memories/user.md."},
	}
}

// request has the parts of a request that the tests check.
type request struct {
	Tools []struct{ Type, Name string }
	// The results of the calls of the last turn.
	Results []result
}

type result struct {
	ID      string `json:"tool_use_id"`
	IsError bool   `json:"is_error"`
	Text    string
	Image   string // its media type
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"Not found"}}`, http.StatusNotFound)
		return
	}
	var body struct {
		Tools    []struct{ Type, Name string }
		Messages []struct {
			Role    string
			Content []struct {
				result
				Type    string
				Content []struct {
					Type, Text string
					Source     struct {
						MediaType string `json:"media_type"`
					}
				}
			}
		}
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	if err != nil || len(f.requests) == len(f.turns) || len(body.Messages) == 0 {
		http.Error(w, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`,
			fmt.Sprint("request ", len(f.requests)+1, " ", err)), http.StatusBadRequest)
		return
	}
	q := request{Tools: body.Tools}
	for _, block := range body.Messages[len(body.Messages)-1].Content {
		if block.Type != "tool_result" {
			continue
		}
		for _, c := range block.Content {
			block.Text += c.Text
			if c.Type == "image" {
				block.Image = c.Source.MediaType
			}
		}
		q.Results = append(q.Results, block.result)
	}
	t := f.turns[len(f.requests)]
	f.requests = append(f.requests, q)
	var content []map[string]any
	stop := "end_turn"
	if t.text != "" {
		content = append(content, map[string]any{"type": "text", "text": t.text})
	}
	for i, c := range t.calls {
		stop = "tool_use"
		content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", len(f.requests), i),
			"name": "memory", "input": c})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": fmt.Sprint("msg_", len(f.requests)), "type": "message",
		"role": "assistant", "model": "fake", "content": content, "stop_reason": stop,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1}})
}
