! SPDX-License-Identifier: MIT
! The functions of mace_wrapper.h for Fortran 2003.
module mace_wrapper
    use, intrinsic :: iso_c_binding
    implicit none

    type, bind(c) :: mace_result
        real(c_double) :: energy           ! eV
        type(c_ptr) :: forces              ! (3, num_atoms), eV/angstrom
        integer(c_int) :: num_atoms
        integer(c_int) :: success          ! 1 on success; 0: see error_msg
        character(kind=c_char) :: error_msg(512)
    end type

    interface
        function mace_init(model_path, model_type, device, enable_cueq) bind(c) result(handle)
            import :: c_ptr, c_int
            type(c_ptr), value :: model_path, model_type, device ! strings that end with c_null_char, or c_null_ptr
            integer(c_int), value :: enable_cueq
            type(c_ptr) :: handle
        end function

        subroutine mace_calculate(handle, positions, atomic_numbers, num_atoms, res) bind(c)
            import :: c_ptr, c_int, c_double, mace_result
            type(c_ptr), value :: handle
            real(c_double), intent(in) :: positions(3, *)
            integer(c_int), intent(in) :: atomic_numbers(*)
            integer(c_int), value :: num_atoms
            type(mace_result), intent(out) :: res
        end subroutine

        ! Rows of the cell in C are columns in Fortran: cell(:, k) is lattice vector k.
        subroutine mace_calculate_periodic(handle, positions, atomic_numbers, num_atoms, cell, pbc, res) bind(c)
            import :: c_ptr, c_int, c_double, mace_result
            type(c_ptr), value :: handle
            real(c_double), intent(in) :: positions(3, *)
            integer(c_int), intent(in) :: atomic_numbers(*)
            integer(c_int), value :: num_atoms
            real(c_double), intent(in) :: cell(3, 3)
            integer(c_int), intent(in) :: pbc(3)
            type(mace_result), intent(out) :: res
        end subroutine

        subroutine mace_free_result(res) bind(c)
            import :: mace_result
            type(mace_result), intent(inout) :: res
        end subroutine

        subroutine mace_destroy(handle) bind(c)
            import :: c_ptr
            type(c_ptr), value :: handle
        end subroutine

        function mace_get_error(handle) bind(c) result(message)
            import :: c_ptr
            type(c_ptr), value :: handle
            type(c_ptr) :: message
        end function
    end interface

contains

    ! Converts a C string to a Fortran string.
    function text_at(address) result(text)
        type(c_ptr), intent(in) :: address
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: length
        call c_f_pointer(address, letters, [512])
        length = 0
        do while (length < 512)
            if (letters(length + 1) == c_null_char) exit
            length = length + 1
        end do
        allocate (character(len=length) :: text)
        text = transfer(letters(1:length), text)
    end function
end module
