// Package load is what every Go contender's program shares: it reads commands from stdin, a JSON object a line, loads the
// node that it was given, and answers each with one line on stdout. The end of stdin ends the program.
//
//	{"do": "who"}                                -> {"leads": true}
//	{"do": "run", "in_flight": 64, "batch": 1, "rate": 0, "seconds": 2, "value_bytes": 100}
//	                                             -> {"commits": .., "seconds": .., "errors": .., "not_sent": .., "percentiles_us": {"50": ..}}
//
// rate 0 is a closed loop: so many goroutines append, wait for the commit, append again. Any other rate is an open loop: arrivals
// stand on an absolute schedule, and a latency counts from when its append was due, however late it was sent.
package load

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Node is one member of a quorum, or a client of one.
type Node interface {
	// Leads says whether Append is to be called here.
	Leads() bool
	// Append returns once the values are committed. Called by many goroutines at a time.
	Append(values [][]byte) error
}

// Run is one workload.
type Run struct {
	Do         string  `json:"do"`
	InFlight   int     `json:"in_flight"` // appends at a time; in an open loop the most of them
	Batch      int     `json:"batch"`     // values an append
	Rate       float64 `json:"rate"`      // values a second; 0: closed loop
	Seconds    float64 `json:"seconds"`
	ValueBytes int     `json:"value_bytes"`
}

// Figures are what a run measured. A batch's latency counts once.
type Figures struct {
	Commits     int64              `json:"commits"` // values
	Seconds     float64            `json:"seconds"`
	Errors      int64              `json:"errors"`
	NotSent     int64              `json:"not_sent"` // values that an open loop had no room for until its time was over
	Percentiles map[string]float64 `json:"percentiles_us"`
	Error       string             `json:"error,omitempty"`
}

var ranks = []float64{1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100}

const tick = 500 * time.Microsecond

// Serve answers commands until stdin ends.
func Serve(node Node) {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var run Run
		var answer any
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			Fatal("a command that is no JSON object", err)
		}
		switch run.Do {
		case "who":
			answer = map[string]bool{"leads": node.Leads()}
		case "run":
			answer = measure(node, run)
		default:
			Fatal("a command that is not known", fmt.Errorf("%q", run.Do))
		}
		if err := out.Encode(answer); err != nil {
			Fatal("stdout", err)
		}
	}
}

// Fatal ends the program; its starter shows what it said.
func Fatal(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", os.Args[0], what, err)
	os.Exit(1)
}

type appender struct {
	took   []int64
	errors int64
	last   error
}

func (a *appender) append(node Node, values [][]byte, since time.Time) {
	err := node.Append(values)
	if err != nil {
		a.errors++
		a.last = err
		return
	}
	a.took = append(a.took, int64(time.Since(since)))
}

func measure(node Node, run Run) Figures {
	values := make([][]byte, run.Batch)
	for n := range values {
		values[n] = make([]byte, run.ValueBytes)
		for at := range values[n] {
			values[n][at] = 'x'
		}
	}
	appenders := make([]appender, run.InFlight)
	var notSent int64
	var running sync.WaitGroup
	began := time.Now()
	if run.Rate == 0 {
		over := began.Add(time.Duration(run.Seconds * 1e9))
		for n := range appenders {
			running.Go(func() {
				for now := time.Now(); now.Before(over) && appenders[n].errors < 100; now = time.Now() {
					appenders[n].append(node, values, now)
				}
			})
		}
	} else {
		due := make(chan time.Time)
		for n := range appenders {
			running.Go(func() {
				for at := range due {
					appenders[n].append(node, values, at)
				}
			})
		}
		notSent = schedule(run, began, due) * int64(run.Batch)
	}
	running.Wait()
	return figures(appenders, run.Batch, notSent, time.Since(began))
}

// schedule hands out when each append is due, in ticks; how many it could not hand out before the time was over.
func schedule(run Run, began time.Time, due chan<- time.Time) int64 {
	defer close(due)
	interval := float64(run.Batch) / run.Rate * 1e9
	total := int64(run.Seconds * 1e9 / interval)
	grace := time.NewTimer(time.Duration(run.Seconds*1e9) + time.Second)
	for sent := int64(0); sent < total; {
		for now := time.Since(began); sent < total && float64(sent)*interval <= float64(now); sent++ {
			select {
			case due <- began.Add(time.Duration(float64(sent) * interval)):
			case <-grace.C:
				return total - sent
			}
		}
		time.Sleep(tick)
	}
	return 0
}

func figures(appenders []appender, batch int, notSent int64, took time.Duration) Figures {
	result := Figures{Seconds: took.Seconds(), NotSent: notSent, Percentiles: map[string]float64{}}
	var all []int64
	for _, each := range appenders {
		all = append(all, each.took...)
		result.Errors += each.errors
		if each.last != nil {
			result.Error = each.last.Error()
		}
	}
	result.Commits = int64(len(all) * batch)
	slices.Sort(all)
	for _, rank := range ranks {
		if len(all) > 0 {
			at := min(len(all)-1, int(float64(len(all))*rank/100))
			result.Percentiles[fmt.Sprint(rank)] = float64(all[at]) / 1e3
		}
	}
	return result
}
