package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A way that requests take: through the Service's address, or straight to a pod as an ingress does it.
type way struct {
	name   string
	direct bool
	client *http.Client
}

// What became of one request. Nobody tries again: what fails here is a request that a user has lost.
type result struct {
	At      float64 `json:"at"` // seconds since 1970, when it began
	Took    float64 `json:"took_s"`
	Way     string  `json:"way"`
	Address string  `json:"address"`
	Pod     string  `json:"pod"`
	Reason  string  `json:"failed"`
	port    atomic.Uint32
}

// asked is the key by which a dialler finds the request that it dials for.
type asked struct{}

type tally struct {
	At     int64          `json:"second"` // since 1970
	Sent   map[string]int `json:"sent"`   // by way
	Failed map[string]int `json:"failed"`
	Pods   map[string]int `json:"pods"` // requests that each answered
}

type loader struct {
	timeout time.Duration
	slices  *endpoints
	lock    sync.Mutex
	out     *json.Encoder
	seconds map[int64]*tally
	asking  map[*result]bool // through the Service, and not answered yet
	lost    []*result        // failed, and their pod is not known yet
	port    atomic.Uint32
}

// load sends RATE requests a second until it is told to end, however long the answers take. On standard output
// it writes one JSON line for each failed request, one for each second, and a sum as the last.
func load() {
	service := flag.String("service", "", "the Service's address and port; none: only straight to the pods")
	api := flag.String("api", "", "the API server")
	name := flag.String("endpoints", "", "NAMESPACE/SERVICE whose EndpointSlices are followed")
	ca := flag.String("ca", "", "file with the API server's certificate")
	token := flag.String("token", "", "file with the token to follow the EndpointSlices with")
	called := flag.String("called", "", "the API server's name in its certificate")
	rate := flag.Int("rate", 200, "requests a second, all ways together")
	timeout := flag.Duration("timeout", 2*time.Second, "after which a request has failed")
	flag.Parse()
	l := &loader{timeout: *timeout, out: json.NewEncoder(os.Stdout), seconds: map[int64]*tally{}, asking: map[*result]bool{}}
	l.slices = follow(*api, *name, *ca, *token, *called)
	l.port.Store(uint32(time.Now().UnixNano()))
	ways := []way{{"pod", true, l.client(false)}, {"pod, keep-alive", true, l.client(true)}}
	if *service != "" {
		ways = append(ways, way{"service", false, l.client(false)}, way{"service, keep-alive", false, l.client(true)})
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	var flying sync.WaitGroup
	pause := time.Second / time.Duration(*rate)
	began := time.Now()
	looked, told := began, began
	sent := 0
sending:
	for ; ; sent++ {
		// By the clock and not by a ticker, which leaves out what it is late for.
		select {
		case <-ended:
			break sending
		case <-time.After(time.Until(began.Add(time.Duration(sent) * pause))):
		}
		if now := time.Now(); now.Sub(looked) > 250*time.Millisecond {
			looked = now
			go l.find()
		}
		if now := time.Now(); now.Sub(told) > time.Second {
			told = now
			l.tell(now.Add(-*timeout - time.Second).Unix())
		}
		flying.Add(1)
		go func(one way, turn int) {
			defer flying.Done()
			l.send(one, *service, turn)
		}(ways[sent%len(ways)], sent/len(ways))
	}
	took := time.Since(began)
	flying.Wait()
	l.find()
	failed := l.tell(math.MaxInt64)
	_ = l.out.Encode(map[string]any{"sum": sent, "failed": failed, "took_s": took.Seconds()})
}

var totalFailed int

func (l *loader) client(keep bool) *http.Client {
	reuse := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
		})
	}
	// A port of our own choice, so that a connection that never came about is found in the kernel's table.
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			port := 10000 + int(l.port.Add(1)%50000)
			dialer := net.Dialer{Timeout: l.timeout, LocalAddr: &net.TCPAddr{Port: port}, Control: reuse}
			if one, ok := ctx.Value(asked{}).(*result); ok {
				one.port.Store(uint32(port))
			}
			connection, err := dialer.DialContext(ctx, network, address)
			if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
				continue
			}
			return connection, err
		}
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: !keep, MaxIdleConnsPerHost: 64}
	return &http.Client{Timeout: l.timeout, Transport: transport}
}

func (l *loader) send(one way, service string, turn int) {
	began := time.Now()
	asked := &result{At: float64(began.UnixNano()) / 1e9, Way: one.name, Address: service}
	if one.direct {
		asked.Address, asked.Pod = l.slices.pick(turn)
	} else {
		l.lock.Lock()
		l.asking[asked] = true
		l.lock.Unlock()
	}
	answered, err := l.ask(one.client, asked)
	asked.Took = time.Since(began).Seconds()
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.asking, asked)
	second := l.second(began.Unix())
	second.Sent[one.name]++
	if err == nil {
		second.Pods[answered]++
		return
	}
	second.Failed[one.name]++
	asked.Reason = reason(err)
	if asked.Pod == "" {
		l.lost = append(l.lost, asked)
	} else {
		_ = l.out.Encode(asked)
	}
}

func (l *loader) ask(client *http.Client, one *result) (string, error) {
	if one.Address == "" {
		return "", errors.New("no pod is ready")
	}
	got := func(info httptrace.GotConnInfo) { one.port.Store(uint32(info.Conn.LocalAddr().(*net.TCPAddr).Port)) }
	ctx := context.WithValue(context.Background(), asked{}, one)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: got})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+one.Address+"/", nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	pod, _, _ := strings.Cut(string(body), " ")
	return pod, err
}

func (l *loader) second(at int64) *tally {
	if l.seconds[at] == nil {
		l.seconds[at] = &tally{at, map[string]int{}, map[string]int{}, map[string]int{}}
	}
	return l.seconds[at]
}

// tell writes the seconds that are over, those before `until`.
func (l *loader) tell(until int64) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	for at, one := range l.seconds {
		if at < until {
			for _, count := range one.Failed {
				totalFailed += count
			}
			_ = l.out.Encode(one)
			delete(l.seconds, at)
		}
	}
	return totalFailed
}

// A connection to an address, from a port of ours. The kernel remembers the last ones of others from that port.
type connection struct{ to, port string }

// find asks the kernel where requests went: the Service's address was changed into a pod's. It is asked of those
// that wait, too: kube-proxy has the kernel forget the connections to a pod that it takes out of a Service.
func (l *loader) find() {
	l.lock.Lock()
	lost := l.lost
	l.lost = nil
	waiting := len(l.asking)
	l.lock.Unlock()
	if len(lost)+waiting == 0 {
		return
	}
	went := map[connection]string{} // -> the address that answers, or does not
	table, _ := os.ReadFile("/proc/net/nf_conntrack")
	for line := range strings.Lines(string(table)) {
		there, back, both := strings.Cut(line[strings.Index(line, "src=")+1:], "src=")
		var to, from, port string
		if _, found := fmt.Sscanf(there[strings.Index(there, " ")+1:], "dst=%s sport=%s dport=%s", &to, &from, &port); both && found == nil {
			went[connection{net.JoinHostPort(to, port), from}] = strings.Fields(back)[0]
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	for one := range l.asking {
		l.name(one, went)
	}
	for _, one := range lost {
		l.name(one, went)
		_ = l.out.Encode(one)
	}
}

// name notes the pod that a request went to, or its address, where that is known.
func (l *loader) name(one *result, went map[connection]string) {
	if address := went[connection{one.Address, fmt.Sprint(one.port.Load())}]; address != "" && one.Pod == "" {
		if one.Pod = l.slices.pod(address); one.Pod == "" {
			one.Pod = address
		}
	}
}

// reason is what went wrong, without addresses, so that the same is counted as the same.
func reason(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}

// The pods behind a Service, as its EndpointSlices tell.
type endpoints struct {
	lock  sync.Mutex
	bySet map[string][]endpoint // by the name of the slice
	ready []endpoint
	names map[string]string // every pod that ever had an address, by address
}

type endpoint struct{ address, pod string }

type endpointSlice struct {
	Metadata struct {
		Name            string
		ResourceVersion string
	}
	Ports     []struct{ Port int }
	Endpoints []struct {
		Addresses  []string
		Conditions struct{ Ready *bool }
		TargetRef  struct{ Name string }
	}
}

func follow(api, name, ca, tokenFile, called string) *endpoints {
	namespace, service, _ := strings.Cut(name, "/")
	certificate, err := os.ReadFile(ca)
	if err != nil {
		fail(err)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		fail(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: called}}}
	url := fmt.Sprintf("%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector=kubernetes.io/service-name=%s",
		api, namespace, service)
	s := &endpoints{bySet: map[string][]endpoint{}, names: map[string]string{}}
	get := func(url string) (*http.Response, error) {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		return client.Do(request)
	}
	version := s.list(get, url)
	go func() {
		for {
			s.watch(get, url+"&watch=1&resourceVersion="+version)
			time.Sleep(100 * time.Millisecond)
			version = s.list(get, url)
		}
	}()
	return s
}

// list takes the slices as they are and returns the version from which to watch; it asks until it is told.
func (s *endpoints) list(get func(string) (*http.Response, error), url string) string {
	for {
		var all struct {
			Metadata struct{ ResourceVersion string }
			Items    []endpointSlice
		}
		answer, err := get(url)
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&all)
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			s.lock.Lock()
			clear(s.bySet)
			s.lock.Unlock()
			for _, one := range all.Items {
				s.take(one, false)
			}
			return all.Metadata.ResourceVersion
		}
		fmt.Fprintf(os.Stderr, "the EndpointSlices cannot be listed: %v\n", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *endpoints) watch(get func(string) (*http.Response, error), url string) {
	answer, err := get(url)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	changes := json.NewDecoder(answer.Body)
	for {
		var change struct {
			Type   string
			Object endpointSlice
		}
		if changes.Decode(&change) != nil || change.Type == "ERROR" {
			return
		}
		s.take(change.Object, change.Type == "DELETED")
	}
}

func (s *endpoints) take(one endpointSlice, deleted bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var ready []endpoint
	for _, each := range one.Endpoints {
		for _, address := range each.Addresses {
			s.names[address] = each.TargetRef.Name
			if (each.Conditions.Ready == nil || *each.Conditions.Ready) && len(one.Ports) > 0 {
				ready = append(ready, endpoint{fmt.Sprintf("%s:%d", address, one.Ports[0].Port), each.TargetRef.Name})
			}
		}
	}
	if s.bySet[one.Metadata.Name] = ready; deleted {
		delete(s.bySet, one.Metadata.Name)
	}
	s.ready = nil
	for _, some := range s.bySet {
		s.ready = append(s.ready, some...)
	}
}

func (s *endpoints) pick(turn int) (address, pod string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.ready) == 0 {
		return "", ""
	}
	one := s.ready[turn%len(s.ready)]
	return one.address, one.pod
}

func (s *endpoints) pod(address string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.names[address]
}
