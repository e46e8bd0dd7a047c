#include "loader.h"
struct demand *open_demand(struct bpf_object *object, const char *socket){(void)object;(void)socket;return 0;}
void send_demand(struct demand *demand){(void)demand;}
