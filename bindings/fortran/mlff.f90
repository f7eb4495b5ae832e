! SPDX-License-Identifier: MIT
! mlff for Fortran 2008: energies, forces and stresses from a model. Compile this file with your program and link libmlff:
!
!     gfortran mlff.f90 program.f90 $(pkg-config --libs mlff)
!
! Units: angstrom, eV, eV/angstrom, eV/angstrom^3. Positions and forces are (3, atoms); cell(:, k) is lattice vector k.
! Procedures with an argument `error` leave it unallocated on success; on failure it contains the reason. Without that
! argument a failure stops the program with the message. Any number of sessions and threads can share a model. A session
! serves one thread at a time. Both free themselves when they go out of scope, so do not assign one to another.
module mlff
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: mlff_model, mlff_session, mlff_version

    integer, parameter, public :: mlff_auto = 0, mlff_mixed = 1, mlff_fp64 = 2, mlff_fp32 = 3, mlff_fast = 4 ! precisions

    type :: mlff_model
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: load => model_load             ! (path [, error]): a file, 'builtin', 'python:...'
        procedure :: cutoff => model_cutoff         ! angstrom
        procedure :: elements => model_elements     ! atomic numbers, ascending
        procedure :: free => model_free             ! existing sessions keep working
        final :: model_finalize
    end type

    type :: mlff_session
        private
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: create => session_create       ! (model [, device, precision, threads, head, error])
        procedure :: evaluate => session_evaluate   ! (numbers, positions, energy [, forces, cell, periodic, stress, virial, atom_energies, charge, multiplicity, error])
        procedure :: device => session_device       ! 'cpu' or 'cuda:0'
        procedure :: free => session_free
        final :: session_finalize
    end type

    ! ---- The structs and functions of mlff.h that are used here ----

    integer(c_int32_t), parameter :: abi_version = 0

    type, bind(c) :: system_struct
        integer(c_size_t) :: struct_size
        integer(c_int64_t) :: atom_count
        type(c_ptr) :: atomic_numbers, positions, cell
        integer(c_int8_t) :: periodic(3)
        real(c_double) :: total_charge, spin_multiplicity
    end type

    type, bind(c) :: result_struct
        integer(c_size_t) :: struct_size
        type(c_ptr) :: energy, forces, stress, virial, atom_energies, atom_virials, descriptors
    end type

    type, bind(c) :: options_struct
        integer(c_size_t) :: struct_size
        type(c_ptr) :: device
        integer(c_int32_t) :: precision, thread_count
        type(c_ptr) :: head
        real(c_double) :: neighbor_skin_angstrom
        integer(c_int32_t) :: exact_radial
        integer(c_int64_t) :: gpu_memory_limit_bytes
        integer(c_int32_t) :: is_trajectory
    end type

    type, bind(c) :: info_struct
        integer(c_size_t) :: struct_size
        real(c_double) :: cutoff_angstrom
        integer(c_int32_t) :: layer_count, element_count, head_count, dtype
        integer(c_int64_t) :: parameter_count
        integer(c_int32_t) :: is_runnable, descriptor_count
    end type

    interface
        integer(c_int32_t) function c_abi_version() bind(c, name='mlff_abi_version')
            import :: c_int32_t
        end function
        type(c_ptr) function c_last_error() bind(c, name='mlff_last_error')
            import :: c_ptr
        end function
        type(c_ptr) function c_version_string() bind(c, name='mlff_version_string')
            import :: c_ptr
        end function
        integer(c_int32_t) function c_model_load(path, model) bind(c, name='mlff_model_load')
            import :: c_int32_t, c_ptr, c_char
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: model
        end function
        subroutine c_model_free(model) bind(c, name='mlff_model_free')
            import :: c_ptr
            type(c_ptr), value :: model
        end subroutine
        integer(c_int32_t) function c_model_get_info(model, info) bind(c, name='mlff_model_get_info')
            import :: c_int32_t, c_ptr, info_struct
            type(c_ptr), value :: model
            type(info_struct), intent(inout) :: info
        end function
        integer(c_int32_t) function c_model_get_elements(model, elements, capacity, count) bind(c, name='mlff_model_get_elements')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: model
            integer(c_int32_t), intent(out) :: elements(*)
            integer(c_int64_t), value :: capacity
            integer(c_int64_t), intent(out) :: count
        end function
        integer(c_int32_t) function c_session_create(model, options, session) bind(c, name='mlff_session_create')
            import :: c_int32_t, c_ptr, options_struct
            type(c_ptr), value :: model
            type(options_struct), intent(in) :: options
            type(c_ptr), intent(out) :: session
        end function
        subroutine c_session_free(session) bind(c, name='mlff_session_free')
            import :: c_ptr
            type(c_ptr), value :: session
        end subroutine
        type(c_ptr) function c_session_device(session) bind(c, name='mlff_session_device')
            import :: c_ptr
            type(c_ptr), value :: session
        end function
        integer(c_int32_t) function c_session_evaluate(session, system, res) bind(c, name='mlff_session_evaluate')
            import :: c_int32_t, c_ptr, system_struct, result_struct
            type(c_ptr), value :: session
            type(system_struct), intent(in) :: system
            type(result_struct), intent(inout) :: res
        end function
    end interface

contains

    function mlff_version() result(text)
        character(len=:), allocatable :: text
        text = text_at(c_version_string())
    end function

    ! ---- Models ----

    subroutine model_load(self, path, error)
        class(mlff_model), intent(inout) :: self
        character(len=*), intent(in) :: path
        character(len=:), allocatable, intent(out), optional :: error
        character(len=:), allocatable :: why
        call self%free()
        why = ''
        if (c_abi_version() /= abi_version) then
            why = 'the library libmlff is of another version than mlff.f90'
        else if (c_model_load(trim(path) // c_null_char, self%handle) /= 0) then
            why = text_at(c_last_error())
        end if
        if (len(why) == 0) return
        if (.not. present(error)) call stop_with(why)
        error = why
    end subroutine

    function model_cutoff(self) result(cutoff)
        class(mlff_model), intent(in) :: self
        real(c_double) :: cutoff
        type(info_struct) :: info
        info%struct_size = c_sizeof(info)
        cutoff = 0
        if (c_model_get_info(self%handle, info) == 0) cutoff = info%cutoff_angstrom
    end function

    function model_elements(self) result(elements)
        class(mlff_model), intent(in) :: self
        integer(c_int32_t), allocatable :: elements(:)
        integer(c_int32_t) :: found(128)
        integer(c_int64_t) :: count
        count = 0
        if (c_model_get_elements(self%handle, found, size(found, kind=c_int64_t), count) /= 0) count = 0
        elements = found(:min(int(count), size(found)))
    end function

    subroutine model_free(self)
        class(mlff_model), intent(inout) :: self
        call c_model_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    subroutine model_finalize(self)
        type(mlff_model), intent(inout) :: self
        call self%free()
    end subroutine

    ! ---- Sessions ----

    subroutine session_create(self, model, device, precision, threads, head, error)
        class(mlff_session), intent(inout) :: self
        class(mlff_model), intent(in) :: model
        character(len=*), intent(in), optional :: device    ! 'auto', 'cpu', 'cuda', 'cuda:1'
        integer, intent(in), optional :: precision, threads ! mlff_fp64 ...; 0 = all cores
        character(len=*), intent(in), optional :: head
        character(len=:), allocatable, intent(out), optional :: error
        character(len=:, kind=c_char), allocatable, target :: device_text, head_text
        character(len=:), allocatable :: why
        type(options_struct) :: options

        why = ''
        options = options_struct(0, c_null_ptr, mlff_auto, 0, c_null_ptr, 0, 0, 0, 0)
        options%struct_size = c_sizeof(options)
        if (present(device)) then
            device_text = trim(device) // c_null_char
            options%device = c_loc(device_text)
        end if
        if (present(head)) then
            head_text = trim(head) // c_null_char
            options%head = c_loc(head_text)
        end if
        if (present(precision)) options%precision = int(precision, c_int32_t)
        if (present(threads)) options%thread_count = int(threads, c_int32_t)
        call self%free()
        if (c_session_create(model%handle, options, self%handle) /= 0) why = text_at(c_last_error())
        if (len(why) == 0) return
        if (.not. present(error)) call stop_with(why)
        error = why
    end subroutine

    ! Absent arguments are not computed. Without `periodic`, a system with a cell is periodic in all directions.
    subroutine session_evaluate(self, numbers, positions, energy, forces, cell, periodic, stress, virial, atom_energies, &
                                charge, multiplicity, error)
        class(mlff_session), intent(inout) :: self
        integer(c_int32_t), intent(in), contiguous, target :: numbers(:)
        real(c_double), intent(in), contiguous, target :: positions(:, :)               ! (3, atoms)
        real(c_double), intent(out), target :: energy
        real(c_double), intent(inout), contiguous, target, optional :: forces(:, :)     ! (3, atoms)
        real(c_double), intent(in), contiguous, target, optional :: cell(:, :)          ! (3, 3), one lattice vector per column
        logical, intent(in), optional :: periodic(3)
        real(c_double), intent(inout), contiguous, target, optional :: stress(:)        ! (6): xx yy zz yz xz xy
        real(c_double), intent(inout), contiguous, target, optional :: virial(:, :)     ! (3, 3)
        real(c_double), intent(inout), contiguous, target, optional :: atom_energies(:) ! (atoms)
        real(c_double), intent(in), optional :: charge, multiplicity
        character(len=:), allocatable, intent(out), optional :: error
        character(len=:), allocatable :: why
        type(system_struct) :: system
        type(result_struct) :: res
        integer :: atoms

        energy = 0
        atoms = size(numbers)
        why = ''
        call check_shape(why, 'positions', shape(positions), [3, atoms])
        system = system_struct(0, atoms, c_loc(numbers), c_loc(positions), c_null_ptr, 0_c_int8_t, 0d0, 0d0)
        system%struct_size = c_sizeof(system)
        if (present(cell)) then
            call check_shape(why, 'cell', shape(cell), [3, 3])
            system%cell = c_loc(cell)
            system%periodic = 1_c_int8_t
            if (present(periodic)) system%periodic = merge(1_c_int8_t, 0_c_int8_t, periodic)
        end if
        if (present(charge)) system%total_charge = charge
        if (present(multiplicity)) system%spin_multiplicity = multiplicity

        res = result_struct(0, c_loc(energy), c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr)
        res%struct_size = c_sizeof(res)
        if (present(forces)) then
            call check_shape(why, 'forces', shape(forces), [3, atoms])
            res%forces = c_loc(forces)
        end if
        if (present(stress)) then
            call check_shape(why, 'stress', shape(stress), [6])
            res%stress = c_loc(stress)
        end if
        if (present(virial)) then
            call check_shape(why, 'virial', shape(virial), [3, 3])
            res%virial = c_loc(virial)
        end if
        if (present(atom_energies)) then
            call check_shape(why, 'atom_energies', shape(atom_energies), [atoms])
            res%atom_energies = c_loc(atom_energies)
        end if
        if (len(why) == 0) then
            if (c_session_evaluate(self%handle, system, res) /= 0) why = text_at(c_last_error())
        end if
        if (len(why) == 0) return
        if (.not. present(error)) call stop_with(why)
        error = why
    end subroutine

    function session_device(self) result(name)
        class(mlff_session), intent(in) :: self
        character(len=:), allocatable :: name
        name = text_at(c_session_device(self%handle))
    end function

    subroutine session_free(self)
        class(mlff_session), intent(inout) :: self
        call c_session_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    subroutine session_finalize(self)
        type(mlff_session), intent(inout) :: self
        call self%free()
    end subroutine

    ! ---- Helpers ----

    ! Adds to `why` if the shape of an array is wrong; the library would write beyond its end.
    subroutine check_shape(why, name, found, expected)
        character(len=:), allocatable, intent(inout) :: why
        character(len=*), intent(in) :: name
        integer, intent(in) :: found(:), expected(:)
        character(len=100) :: sizes
        if (all(found == expected)) return
        write (sizes, '(*(i0, :, ", "))') expected
        why = 'the array ' // name // ' has the wrong shape, expected (' // trim(sizes) // ')'
    end subroutine

    subroutine stop_with(why)
        use, intrinsic :: iso_fortran_env, only: error_unit
        character(len=*), intent(in) :: why
        write (error_unit, '(a, a)') 'mlff: ', why
        stop 1
    end subroutine

    ! Converts a C string to a Fortran string; '' for NULL.
    function text_at(address) result(text)
        type(c_ptr), intent(in) :: address
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer, parameter :: longest = 2000
        integer :: length, k
        text = ''
        if (.not. c_associated(address)) return
        call c_f_pointer(address, letters, [longest])
        length = 0
        do while (length < longest)
            if (letters(length + 1) == c_null_char) exit
            length = length + 1
        end do
        deallocate (text)
        allocate (character(len=length) :: text)
        do k = 1, length
            text(k:k) = letters(k)
        end do
    end function
end module
