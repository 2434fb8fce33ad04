// A simulated accelerator: memory of its own, streams, events, pinned memory and random numbers. Its kernels run on the
// CPU, at once. What a real device may do later, or in another order, shows all the same:
//   - vector clocks know what each stream has waited for; to use what another stream writes without that is an error;
//   - memory that is freed while another stream may use it is noted, unless `record_stream` was called;
//   - copies from and to pinned memory happen as late as they may, and fresh memory is full of NaN: who does not wait
//     gets wrong numbers;
//   - each time that the host waits for the device is noted, with the reason.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

namespace sim {
using namespace at;
constexpr int n_devices = 2, n_streams = 8, n_all = n_devices*n_streams;
constexpr auto type = c10::DeviceType::PrivateUse1;

// What has happened: for each stream, up to which of its operations
struct Clock : std::array<uint64_t, n_all> {
  Clock() { fill(0); }
  void join(const Clock& o) { for (int i=0; i<n_all; i++) (*this)[i] = std::max((*this)[i], o[i]); }
};

struct Copy { int stream; uint64_t tick; std::function<void()> run; };
struct Event { Clock clock; std::chrono::steady_clock::time_point time; };
struct Block {
  void* data; size_t n; int device, stream;   // of which it was allocated
  int writer = -1; uint64_t written = 0;      // which stream wrote last, and which of its operations that was
  Clock reads;                                // the last operation of each stream that reads
  std::set<int> recorded;                     // streams for which `record_stream` was called
};

std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
std::array<Clock, n_all> clocks;    // what each stream knows to be done before its next operation
Clock host;                         // what the host knows to be done
auto& pending = *new std::vector<Copy>;   // never destroyed, as what they hold needs what is destroyed before
auto& syncs = *new std::vector<std::string>; auto& races = *new std::vector<std::string>;
auto& pinned = *new std::map<char*, size_t>;
std::array<int64_t, n_devices> used, peak;
thread_local int device = 0;
thread_local std::array<int, n_devices> stream = {};
thread_local bool inside = false;   // in a kernel: copies belong to it

int index(const Stream& s) { return s.device_index()*n_streams + s.id(); }
int current(int dev) { return dev*n_streams + stream[dev]; }
std::string name(int s) { return "stream " + std::to_string(s%n_streams) + " of device " + std::to_string(s/n_streams); }

// Run the copies that are done as far as `clock` knows
void run(const Clock& clock) {
  std::vector<Copy> due, rest;
  { Lock l(mutex);
    for (auto& c : pending) (c.tick<=clock[c.stream] ? due : rest).push_back(std::move(c));
    pending = std::move(rest); }
  for (auto& c : due) c.run();
}

uint64_t begin(int s, bool late=false) {   // an operation on stream `s`; unless it is a late one, what comes before is done
  uint64_t tick;
  { Lock l(mutex); clocks[s].join(host); tick = ++clocks[s][s]; }
  if (!late) run(clocks[s]);
  return tick;
}

void wait(const Clock& clock, const std::string& why) {   // the host waits
  { Lock l(mutex); host.join(clock); if (!why.empty()) syncs.push_back(why); }
  run(host);
}

void touch(const Tensor& t, int s, bool write, const std::string& op) {
  if (!t.defined() || !t.has_storage() || !t.is_privateuseone()) return;
  auto b = static_cast<Block*>(t.storage().data_ptr().get_context());
  if (!b) return;
  Lock l(mutex);
  auto& now = clocks[s];
  TORCH_CHECK(b->writer<0 || now[b->writer]>=b->written, "race: ", op, " on ", name(s), " uses what ", name(b->writer),
              " writes, without waiting for it");
  if (write) for (int r=0; r<n_all; r++)
    TORCH_CHECK(now[r]>=b->reads[r], "race: ", op, " on ", name(s), " writes to what ", name(r), " reads, without waiting for it");
  if (write) b->writer = s, b->written = now[s]; else b->reads[s] = now[s];
}

// Memory
void release(void* ctx) {
  auto b = static_cast<Block*>(ctx);
  { Lock l(mutex);
    auto& now = clocks[b->stream];
    for (int r=0; r<n_all; r++) {
      auto last = std::max(b->reads[r], b->writer==r ? b->written : 0);
      if (r!=b->stream && now[r]<last && host[r]<last && !b->recorded.count(r))
        races.push_back("memory of " + name(b->stream) + " is freed while " + name(r) + " may use it: `record_stream` is missing");
    }
    used[b->device] -= b->n; }
  std::free(b->data);
  delete b;
}

struct Memory final : c10::DeviceAllocator {
  DataPtr allocate(size_t n) override {
    if (!n) return {nullptr, nullptr, &release_none, Device(type, device)};
    auto b = new Block{std::malloc(n), n, device, current(device)};
    std::memset(b->data, 0xff, n);
    Lock l(mutex);
    used[device] += n; peak[device] = std::max(peak[device], used[device]);
    return {b->data, b, &release, Device(type, device)};
  }
  static void release_none(void*) {}
  DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const DataPtr& p, Stream s) override {
    if (p.get_context()) { Lock l(mutex); static_cast<Block*>(p.get_context())->recorded.insert(index(s)); }
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex d) override {
    c10::CachingDeviceAllocator::DeviceStats res;
    for (auto* o : {&res.allocated_bytes[0], &res.reserved_bytes[0]}) o->current = used[d], o->peak = peak[d];
    return res;
  }
  void resetAccumulatedStats(DeviceIndex) override {}
  void resetPeakStats(DeviceIndex d) override { peak[d] = used[d]; }
  std::pair<size_t,size_t> getMemoryInfo(DeviceIndex d) override { return {(size_t(1)<<33) - used[d], size_t(1)<<33}; }
} memory;

struct Pinned final : at::HostAllocator {
  DataPtr allocate(size_t n) override {
    auto p = static_cast<char*>(std::malloc(std::max<size_t>(n, 1)));
    std::memset(p, 0xff, n);
    Lock l(mutex);
    pinned[p] = n;
    return {p, p, &free, Device(kCPU)};
  }
  static void free(void* p) { { Lock l(mutex); pinned.erase(static_cast<char*>(p)); } std::free(p); }
  void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }
  bool record_event(void*, void*, Stream) override { return true; }
  void empty_cache() override {}
  HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
} host_memory;

bool is_pinned(const void* p) {
  Lock l(mutex);
  auto it = pinned.upper_bound((char*)p);
  return it!=pinned.begin() && (--it, (char*)p < it->first + std::max<size_t>(it->second, 1));
}

// Random numbers: the generator of the CPU, with a state of its own
struct Random final : CPUGeneratorImpl {
  Random(int dev) : CPUGeneratorImpl(default_rng_seed_val) {
    device_ = Device(type, dev);
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }
  Random* clone_impl() const override {
    auto g = new Random(device_.index());
    g->set_state(*get_state());
    return g;
  }
};
const Generator& generator(int dev) {
  static auto& gens = *new std::array<Generator, n_devices>{make_generator<Random>(0), make_generator<Random>(1)};
  return gens[dev<0 ? device : dev];
}

struct Hooks final : PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return n_devices; }
  DeviceIndex getCurrentDevice() const override { return device; }
  void setCurrentDevice(DeviceIndex d) const override { TORCH_CHECK(d>=0 && d<n_devices, "invalid device ordinal"); device = d; }
  DeviceIndex exchangeDevice(DeviceIndex d) const override { auto old = device; setCurrentDevice(d); return old; }
  DeviceIndex maybeExchangeDevice(DeviceIndex d) const override { auto old = device; if (d>=0) setCurrentDevice(d); return old; }
  const Generator& getDefaultGenerator(DeviceIndex d) const override { return generator(d); }
  Generator getNewGenerator(DeviceIndex d) const override { return make_generator<Random>(d<0 ? device : d); }
  Device getDeviceFromPtr(void*) const override { return Device(type, device); }
  bool isPinnedPtr(const void* p) const override { return is_pinned(p); }
  Allocator* getPinnedMemoryAllocator() const override { return &host_memory; }
  void resizePrivateUse1Bytes(const Storage& s, size_t n) const override {
    auto data = memory.allocate(n);
    std::memcpy(data.get(), s.data(), std::min(n, s.nbytes()));
    s.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
    s.unsafeGetStorageImpl()->set_nbytes(n);
  }
} hooks;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  Guard() = default;
  Guard(DeviceType) {}
  DeviceType type() const override { return sim::type; }
  Device exchangeDevice(Device d) const override { return Device(sim::type, hooks.exchangeDevice(d.index())); }
  Device getDevice() const override { return Device(sim::type, device); }
  void setDevice(Device d) const override { hooks.setCurrentDevice(d.index()); }
  void uncheckedSetDevice(Device d) const noexcept override { device = d.index(); }
  DeviceIndex deviceCount() const noexcept override { return n_devices; }
  static int at(Device d) { return d.has_index() ? d.index() : device; }
  static Stream make(Device d, int id) { return Stream(Stream::UNSAFE, Device(sim::type, at(d)), id); }
  Stream getStream(Device d) const override { return make(d, stream[at(d)]); }
  Stream getDefaultStream(Device d) const override { return make(d, 0); }
  Stream getNewStream(Device d, int) const override { static int n = 0; return make(d, 1 + n++%(n_streams-1)); }
  Stream getStreamFromGlobalPool(Device d, bool) const override { return getNewStream(d, 0); }
  Stream exchangeStream(Stream s) const override { auto old = getStream(s.device()); stream[s.device_index()] = s.id(); return old; }
  void record(void** e, const Stream& s, const DeviceIndex, const c10::EventFlag) const override {
    if (!*e) *e = new Event();
    Lock l(mutex);
    clocks[index(s)].join(host);
    *static_cast<Event*>(*e) = {clocks[index(s)], std::chrono::steady_clock::now()};
  }
  void destroyEvent(void* e, const DeviceIndex) const noexcept override { delete static_cast<Event*>(e); }
  void block(void* e, const Stream& s) const override {
    if (e) { Lock l(mutex); clocks[index(s)].join(static_cast<Event*>(e)->clock); }
  }
  bool ready(const Clock& clock) const {
    bool res = true;
    { Lock l(mutex); for (auto& c : pending) if (c.tick<=clock[c.stream]) res = false; }
    wait(clock, "");
    return res;
  }
  bool queryEvent(void* e) const override { return !e || ready(static_cast<Event*>(e)->clock); }
  bool queryStream(const Stream& s) const override { return ready(clocks[index(s)]); }
  void synchronizeEvent(void* e) const override { if (e) wait(static_cast<Event*>(e)->clock, "event"); }
  void synchronizeStream(const Stream& s) const override { wait(clocks[index(s)], "stream"); }
  void synchronizeDevice(const DeviceIndex d) const override {
    Clock all;
    for (int i=0; i<n_streams; i++) all.join(clocks[(d<0 ? device : d)*n_streams+i]);
    wait(all, "device");
  }
  void recordDataPtrOnStream(const DataPtr& p, const Stream& s) const override { memory.recordStream(p, s); }
  double elapsedTime(void* a, void* b, const DeviceIndex) const override {
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(b)->time - static_cast<Event*>(a)->time).count();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// Tensors
template<class T> using Maybe = std::optional<T>;
constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

Tensor empty(IntArrayRef size, Maybe<ScalarType> dtype, Maybe<Layout> layout, Maybe<Device> dev, Maybe<bool> pin,
             Maybe<MemoryFormat> fmt) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(layout.value_or(kStrided)==kStrided, "only dense tensors live on this device");
  const c10::DeviceGuard guard(*dev);
  return at::detail::empty_generic(size, &memory, keys, c10::dtype_or_default(dtype), fmt);
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Maybe<ScalarType> dtype, Maybe<Layout>, Maybe<Device> dev, Maybe<bool>) {
  const c10::DeviceGuard guard(*dev);
  return at::detail::empty_strided_generic(size, stride, &memory, keys, c10::dtype_or_default(dtype));
}

Tensor on_cpu(const Tensor& t) {   // the same memory
  if (!t.is_privateuseone()) return t;
  auto res = from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(kCPU));
  if (t.is_neg()) res._set_neg(true);
  return res;
}
void plain_copy(const Tensor& from, const Tensor& to) { NoGradGuard g; on_cpu(to).copy_(on_cpu(from)); }

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (!from.numel()) return to;
  int s = current((to.is_privateuseone() ? to : from).device().index());
  if (inside) { touch(to, s, true, "copy"); plain_copy(from, to); return to; }
  bool both = from.is_privateuseone() && to.is_privateuseone(), pins = to.is_cpu() || is_pinned(from.data_ptr());
  bool late = !both && non_blocking && from.scalar_type()==to.scalar_type() && pins;
  auto tick = begin(s, late);
  if (both && from.device()!=to.device()) {   // the streams of both devices wait for each other
    Lock l(mutex);
    auto& other = clocks[current(from.device().index())];
    clocks[s].join(other); other.join(clocks[s]);
  }
  touch(from, s, false, "copy"); touch(to, s, true, "copy");
  if (late) {
    Lock l(mutex);
    pending.push_back({s, tick, [from=from.detach(), to=to.detach()] { plain_copy(from, to); }});
    return to;
  }
  if (!both && !non_blocking) wait(clocks[s], from.is_cpu() ? "copy to the device" : "copy to the host");
  plain_copy(from, to);
  return to;
}
Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) { to.resize_(from.sizes()); return copy_from(from, to, false); }

Scalar item(const Tensor& t) {
  int s = current(t.device().index());
  begin(s); touch(t, s, false, "item");
  wait(clocks[s], "item");
  return native::_local_scalar_dense_cpu(on_cpu(t));
}
Tensor as_strided(const Tensor& t, IntArrayRef size, IntArrayRef stride, Maybe<int64_t> offset) {
  return native::as_strided_tensorimpl(t, size, stride, offset);
}
void record_stream(Tensor& t, Stream s) { memory.recordStream(t.storage().data_ptr(), s); }

// Every other operation. Some take tensors of the CPU, too
bool may_mix(const std::string& op) {
  for (auto start : {"aten::index", "aten::_index_put", "aten::_amp"}) if (op.rfind(start, 0)==0) return true;
  return false;
}

struct Draws {   // the kernel draws from the generator of the device, in place of that of the CPU
  const Generator* gen;
  Generator cpu = at::detail::getDefaultCPUGenerator();
  Tensor old;
  bool was = inside;
  Draws(const Generator* gen) : gen(gen) {
    inside = true;
    if (gen) { old = cpu.get_state(); cpu.set_state(gen->get_state()); }
  }
  ~Draws() {
    inside = was;
    if (gen) { auto own = *gen; own.set_state(cpu.get_state()); cpu.set_state(old); }
  }
};

void kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  auto& schema = op.schema();
  auto args = torch::jit::last(stack, schema.arguments().size());
  auto op_name = schema.name();
  std::vector<std::pair<Tensor,bool>> ts;
  for (size_t i=0; i<args.size(); i++) {
    bool write = schema.arguments()[i].alias_info() && schema.arguments()[i].alias_info()->isWrite();
    auto& a = args[i];
    if (a.isTensor()) ts.emplace_back(a.toTensor(), write);
    else if (a.isTensorList()) for (const Tensor& t : a.toTensorList()) ts.emplace_back(t, write);
    else if (a.isOptionalTensorList())
      for (const auto& t : a.toOptionalTensorList()) { Maybe<Tensor> o = t; if (o) ts.emplace_back(*o, write); }
  }
  int dev = -1, mixed = 0;
  for (auto& [t,_] : ts) if (t.defined()) {
    if (!t.is_privateuseone()) mixed |= t.dim()>0 && !may_mix(op_name);
    else if (dev<0) dev = t.device().index();
    else mixed |= dev!=t.device().index();
  }
  for (auto& a : args) if (dev<0 && a.isDevice() && a.toDevice().is_privateuseone()) dev = a.toDevice().index();
  if (dev<0) dev = device;
  TORCH_CHECK(!mixed, "Expected all tensors to be on the same device, but found at least two devices in ", op_name);
  const c10::DeviceGuard guard(Device(type, dev));
  int s = current(dev);
  begin(s);
  for (auto& [t,w] : ts) touch(t, s, w, op_name);
  for (auto& [t,_] : ts) if (t.defined() && t.is_cpu() && t.dim()>0) wait(clocks[s], op_name + " of a tensor of the CPU");
  if (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output)) wait(clocks[s], op_name);
  const Generator* gen = op.hasTag(at::Tag::nondeterministic_seeded) ? &generator(dev) : nullptr;
  Maybe<Generator> given;
  for (auto a = stack->end()-args.size(); a!=stack->end(); a++)
    if (a->isGenerator() && a->toGenerator().device().is_privateuseone()) { given = a->toGenerator(); *a = c10::IValue(); }
  if (given) gen = &*given;
  Draws draws(gen);
  native::cpu_fallback(op, stack);
}

// What the CPU has under another name, or what writes without saying so
struct Own {   // an operation on tensors that it reads
  int s; std::string op; Device dev;
  Own(const std::string& op, const Tensor& x) : s(current(x.device().index())), op(op), dev(x.device()) { begin(s); (*this)(x); }
  Tensor operator()(const Tensor& t, bool write=false) const {
    if (!t.defined()) return t;
    TORCH_CHECK(t.is_privateuseone(), "Expected all tensors to be on the same device");
    touch(t, s, write, op);
    return on_cpu(t);
  }
  Maybe<Tensor> operator()(const Maybe<Tensor>& t, bool write=false) const { return t ? Maybe<Tensor>((*this)(*t, write)) : t; }
  Tensor back(const Tensor& t) const {
    if (!t.defined()) return t;
    inside = true;
    auto res = t.to(dev);
    inside = false;
    return res;
  }
};

Tensor convolution(const Tensor& x, const Tensor& w, const Maybe<Tensor>& b, IntArrayRef stride, IntArrayRef pad,
                   IntArrayRef dilation, bool transposed, IntArrayRef out_pad, int64_t groups) {
  Own o("convolution", x);
  return o.back(at::convolution(o(x), o(w), o(b), stride, pad, dilation, transposed, out_pad, groups));
}

using Three = std::tuple<Tensor,Tensor,Tensor>;
Three convolution_backward(const Tensor& g, const Tensor& x, const Tensor& w, IntArrayRef stride, IntArrayRef pad,
                           IntArrayRef dilation, bool transposed, IntArrayRef out_pad, int64_t groups, std::array<bool,3> mask) {
  Own o("convolution_backward", x);
  auto [a,b,c] = at::convolution_backward(o(g), o(x), o(w), IntArrayRef({w.size(transposed ? 1 : 0)}), stride, pad, dilation,
                                          transposed, out_pad, groups, mask);
  return {o.back(a), o.back(b), o.back(c)};
}

Three batch_norm(const Tensor& x, const Maybe<Tensor>& w, const Maybe<Tensor>& b, const Maybe<Tensor>& mean,
                 const Maybe<Tensor>& var, bool train, double momentum, double eps) {
  Own o("batch_norm", x);
  auto [y,m,v] = at::native_batch_norm(o(x), o(w), o(b), o(mean, train), o(var, train), train, momentum, eps);
  return {o.back(y), o.back(m), o.back(v)};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&kernel>()); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(native::view));
  m.impl("_reshape_alias", TORCH_FN(native::_reshape_alias));
  m.impl("resize_", TORCH_FN(native::resize_));
  m.impl("set_.source_Tensor", TORCH_FN(native::set_tensor_));
  m.impl("set_.source_Storage", TORCH_FN(native::set_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(native::set_storage_cpu_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(item));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("native_batch_norm", TORCH_FN(batch_norm));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOW(OP) KERNEL_PRIVATEUSEONE(OP, lower_precision_fp)
#define HIGH(OP) KERNEL_PRIVATEUSEONE(OP, fp32)
  LOW(mm) LOW(addmm) LOW(bmm) LOW(matmul) LOW(linear) LOW(conv2d)
  HIGH(cross_entropy_loss) HIGH(nll_loss) HIGH(mse_loss)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  c10::SetAllocator(type, &memory);
  at::setHostAllocator(type, &host_memory);
  at::RegisterPrivateUse1HooksInterface(&hooks);
  m.def("take_syncs", [] { Lock l(mutex); return std::exchange(syncs, {}); });
  m.def("take_races", [] { Lock l(mutex); return std::exchange(races, {}); });
  m.def("default_generator", [](int d) { return generator(d); });
}
} // namespace sim
