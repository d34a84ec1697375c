#pragma GCC diagnostic ignored "-Wconversion"
#include <cstdio>
#include <cstdlib>
#include <random>
#include <chrono>
#include <algorithm>
#include <vector>
#include <sys/resource.h>
#include "tests/bench/bosc_index.h"
using namespace mariner; using namespace mariner::bench;
static double now(){return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();}
static double cpu(){rusage r;getrusage(RUSAGE_SELF,&r);return r.ru_utime.tv_sec+r.ru_stime.tv_sec+(r.ru_utime.tv_usec+r.ru_stime.tv_usec)*1e-6;}
int main(int c,char**v){
  std::uint64_t preload=strtoull(v[1],0,10), mem=strtoull(v[2],0,10)<<20; double secs=atof(v[3]); 
  BoscIndex::Options o; o.path=c>4?v[4]:"/work/main/build/qi.bin"; o.disk_bytes=24ull<<30; o.block_bytes=c>5?atoi(v[5]):16384; o.store.memory_bytes=mem; o.store.cache_bytes=mem/8; if(c>6)o.store.runs_in_flight=atoi(v[6]);
  auto e=BoscIndex::create(o); if(!e){printf("%s\n",e.error().message.c_str());return 1;}
  std::uint64_t blocks=1ull<<28; std::uint64_t step=preload?blocks/preload:1; if(!step)step=1;
  double t0=now(); std::uint64_t i=0,j=0;
  auto r=(*e)->load([&]()->std::optional<BenchVersion>{ if(i==preload)return std::nullopt; BenchVersion b{i*step,i+1,i}; ++i; return b;},[&]()->std::optional<BenchVersion>{ if(j==preload/10)return std::nullopt; BenchVersion b{j*step,j+1,j}; ++j; return b;});
  auto k=(*e)->counts(); printf("load %.1f s, disk %.2f GiB, written %.2f GiB nodes %.1f MB\n",now()-t0,k.disk_bytes/1073741824.,k.bytes_written/1073741824.,k.node_bytes/1e6);
  std::mt19937_64 rnd(1); std::uint64_t seq=preload+1; double end=now()+secs; std::uint64_t n=0,last=0; double lt=now(); double c0=cpu(); auto k0=k;
  while(now()<end){ for(int q=0;q<3200;q++){ (*e)->insert({rnd()%blocks,++seq,seq}); ++n; }
    if(now()-lt>=2){ auto k2=(*e)->counts(); double dt=now()-lt, dn=n-last; printf("%.0f k/s cpu %.2f us  w %.0f B/ver r %.0f B/ver cycles %llu mem %.0f MB disk %.2f GiB blocks/run %.1f mods/block %.1f\n",dn/dt/1e3,(cpu()-c0)/dn*1e6,(k2.bytes_written-k0.bytes_written)/dn,(k2.bytes_read-k0.bytes_read)/dn,(unsigned long long)k2.cycles,k2.memory_bytes/1e6,k2.disk_bytes/1073741824.,(*e)->store().statistics().blocks_committed*1.0/(*e)->store().statistics().runs,(*e)->store().statistics().modifications*1.0/(*e)->store().statistics().blocks_committed); fflush(stdout); lt=now(); last=n; c0=cpu(); k0=k2; } }
  std::vector<double> l; for(int q=0;q<2000;q++){ double a=now(); (*e)->find(rnd()%blocks,seq); l.push_back(now()-a);} std::sort(l.begin(),l.end()); printf("lookup p50 %.0f us p99 %.0f us\n",l[1000]*1e6,l[1980]*1e6);
}
